"""``slatewise label ...``: label items on a page that asks the best next question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="label",
    help="Label items on a page that asks the best next question.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ProjectArgument = Annotated[Path, typer.Argument(help="The file of the project, as beach.db.")]


@app.command()
def serve(
    project: ProjectArgument,
    host: Annotated[str, typer.Option(help="Where to listen; anything but this machine needs tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0: one that is free.", min=0, max=65535)] = 8765,
    origin: Annotated[
        str | None, typer.Option(help="The address that browsers use, as https://label.example.org.")
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A proxy here passes requests on, and says whose they are."),
    ] = False,
) -> None:
    """Serve the page of a project, until Ctrl-C.

    Example: slatewise label serve beach.db
    """
    from slatewise.labelling.page import serve as serve_page

    serve_page(project, host=host, port=port, origin=origin, behind_proxy=behind_proxy, ready=_say)


def _say(address: str) -> None:
    print(f"labelling page: {address} (Ctrl-C ends it)", flush=True)
