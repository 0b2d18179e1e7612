"""``slatewise label ...``: label items on a page that asks the best next question."""

from __future__ import annotations

from typing import Annotated

import typer

from slatewise.cli import label_project
from slatewise.cli.label_token import token

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
        typer.Option("--behind-proxy", help="A proxy on this machine passes requests on and tells whose they are."),
    ] = False,
) -> None:
    """Serve the page of a project, until Ctrl-C.

    Example: slatewise label serve beach
    """
    from slatewise.labelling.page import serve as serve_page
    from slatewise.labelling.setup.project_folder import project_file

    serve_page(project_file(project), host=host, port=port, origin=origin, behind_proxy=behind_proxy, ready=_say)


for command in (label_project.status, label_project.export):
    app.command()(command)
app.command("import")(label_project.import_)
app.add_typer(token, name="token")
for command in (label_project.rename, label_project.forget, label_project.backup):
    app.command()(command)


def _say(address: str) -> None:
    print(f"labelling page: {address} (Ctrl-C ends it)", flush=True)
