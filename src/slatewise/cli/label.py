"""``slatewise label ...``: label items on a page that asks the best next question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from slatewise.cli import label_project
from slatewise.cli.console import working
from slatewise.cli.label_token import token

_DEMO = Path("label-demo")
_HERE = ("127.0.0.1", "localhost", "::1")

app = typer.Typer(
    name="label",
    help="Label items on a page that asks the best next question.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(label_project.init)


@app.command()
def serve(
    project: label_project.ProjectArgument,
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

    Example: slatewise label serve beach
    """
    from slatewise.labeling.page import serve as serve_page
    from slatewise.labeling.setup.project_folder import project_file

    serve_page(project_file(project), host=host, port=port, origin=origin, behind_proxy=behind_proxy, ready=_say)


@app.command()
def demo(
    project: Annotated[Path, typer.Argument(metavar="PROJECT", help="The folder to make, or to use again.")] = _DEMO,
    port: Annotated[int, typer.Option(help="The port; 0: one that is free.", min=0, max=65535)] = 8765,
) -> None:
    """Draw scenes to label and serve their page: nothing is needed, some seconds.

    Example: slatewise label demo
    """
    from slatewise.labeling.page import serve as serve_page
    from slatewise.labeling.setup.demo import make_demo_folder
    from slatewise.labeling.setup.project_folder import project_file

    if not project.exists():
        project.parent.mkdir(parents=True, exist_ok=True)
        print("drawing scenes and training a first model: some seconds", flush=True)
        with working("label demo"):
            make_demo_folder(project)
    serve_page(project_file(project), port=port, ready=_say)


for command in (label_project.status, label_project.export):
    app.command()(command)
app.command("import")(label_project.import_)
app.add_typer(token, name="token")
for command in (label_project.rename, label_project.forget, label_project.audit, label_project.backup):
    app.command()(command)


def _say(address: str) -> None:
    print(f"labeling page: {address} (Ctrl-C ends it)", flush=True)
    where = urlsplit(address)
    if where.scheme == "http" and where.hostname not in _HERE:
        print(
            "not encrypted: others in the network can read tokens and answers; a proxy with TLS helps",
            flush=True,
        )
