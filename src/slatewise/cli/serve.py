"""``slatewise serve MODEL...``: the HTTP service."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

NEEDED = ("starlette", "uvicorn", "msgspec", "prometheus_client")


def require_extra() -> None:
    """Say what to install where the extra is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ValueError(f"serve: expected {', '.join(missing)} to be installed: pip install 'slatewise[serve]'")


def run(
    models: list[str],
    host: str,
    port: int,
    token_file: Path | None,
    workers: int,
    origin: str | None,
    behind_proxy: bool,
    threads: int | None,
) -> int:
    """Serve until a signal comes; return the exit code."""
    require_extra()
    from slatewise.core.running.executor import thread_count
    from slatewise.serve.settings import Settings
    from slatewise.serve.supervisor import serve

    n_jobs = threads or max(thread_count(None) // workers, 1)
    settings = Settings(
        tuple(models), host, port, None if token_file is None else str(token_file), origin, behind_proxy, n_jobs
    )

    def print_address(address: str) -> None:
        with suppress(BrokenPipeError):  # nobody reads it, and the service answers all the same
            print(f"service: {address} (Ctrl-C ends it)", flush=True)

    return serve(settings, workers, print_address)


def make_token(path: Path) -> str:
    """Add a token to a file, and return it."""
    from slatewise.serve.token_file import add_token

    return add_token(path)
