# A service of models: docker build -t slatewise . ; how to run it is on the page "Put it behind HTTP" of the docs.
FROM python:3.11-slim AS build
COPY . /source
RUN python -m venv /opt/slatewise && /opt/slatewise/bin/pip install --no-cache-dir "/source[serve]"

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin slatewise
COPY --from=build /opt/slatewise /opt/slatewise
# The root file system may be read-only: kernels and copies of models go to /tmp, which is then a tmpfs.
ENV PATH=/opt/slatewise/bin:$PATH NUMBA_CACHE_DIR=/tmp/numba MPLCONFIGDIR=/tmp/matplotlib PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /models
# Inside it is always this port, where the health check asks; docker run -p chooses the one outside.
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s \
  CMD ["python", "-c", "import http.client as c; r = c.HTTPConnection('127.0.0.1', 8000, timeout=2); r.request('GET', '/ready'); raise SystemExit(r.getresponse().status != 200)"]
ENTRYPOINT ["slatewise", "serve", "--host", "0.0.0.0", "--port", "8000"]
