"""Ask a page as its own script does: with origin, form token and a name."""

import asyncio
import wave

import httpx

from slatewise.labeling.page import make_app

ORIGIN = "http://localhost:8765"
LABELS = ["beach", "sea", "boat", "street", "car", "people", "night", "snow"]
SCENE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 3"><rect width="4" height="3" fill="hsl({hue} 60% 70%)"/>'
    '<circle cx="{x}" cy="1.4" r=".8" fill="hsl({other} 70% 45%)"/><path d="M0 3V2.2L4 2.5V3" fill="#465"/></svg>'
)


def make_files(folder, n):
    folder.mkdir()
    for number in range(n):
        drawn = SCENE.format(hue=37 * number % 360, other=(37 * number + 150) % 360, x=0.8 + number % 5 * 0.6)
        (folder / f"{number}.svg").write_text(drawn)
    (folder / "broken.png").write_bytes(b"\x89PNG no picture")
    with wave.open(str(folder / "noise.wav"), "wb") as sound:
        sound.setparams((1, 1, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(range(256)) * 16)


class LocalClient:
    """The page of a project, and no network."""

    def __init__(self, path, site=None, token=None):
        headers = {"origin": ORIGIN} if token is None else {"authorization": f"Bearer {token}"}
        self.app = make_app(path, site=site)
        self.page_state = self.app._app.state.page_state
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, raise_app_exceptions=False), base_url=ORIGIN, headers=headers
        )

    def __enter__(self):
        self._runner = asyncio.Runner()
        self._lifespan = self.app._app.router.lifespan_context(self.app._app)
        self._runner.run(self._lifespan.__aenter__())
        self._client.headers["x-form-token"] = self.get("/api/me")["form_token"]
        return self

    def __exit__(self, *_):
        self._runner.run(self._client.aclose())
        self._runner.run(self._lifespan.__aexit__(None, None, None))
        self._runner.close()

    def ask(self, method, path, **more):
        return self._runner.run(self._client.request(method, path, **more))

    def get(self, path, status=200):
        reply = self.ask("GET", path)
        assert reply.status_code == status, reply.text
        return reply.json()

    def post(self, path, body=None, status=200, annotator="Ann"):
        reply = self.ask("POST", path, json={} if body is None else body, params={"annotator": annotator})
        assert reply.status_code == status, reply.text
        return reply.json()
