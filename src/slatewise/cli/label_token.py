"""``slatewise label token``: who may enter the page from other machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slatewise.cli.console import print_table, when

if TYPE_CHECKING:
    from slatewise.labeling import Project

ProjectArgument = Annotated[Path, typer.Argument(metavar="PROJECT", help="The folder that label init made.")]

token = typer.Typer(
    help="Make, list and revoke tokens: others enter with them.", no_args_is_help=True, rich_markup_mode=None
)


@token.command()
def make(
    project: ProjectArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who is to enter.")],
    role: Annotated[str, typer.Option(help="annotator, reviewer, or owner.")] = "annotator",
) -> None:
    """Make a token and show it, this once.

    Only a digest of it is kept.

    Example: slatewise label token make beach Ann --role reviewer
    """
    from slatewise.labeling.page.access_tokens import new_token
    from slatewise.web.tokens import ROLES

    if role not in ROLES:
        raise ValueError(f"--role: expected one of {', '.join(ROLES)}, found {role!r}")
    with _opened(project) as opened:
        made = new_token(opened, name, role)
        number = opened.tokens.all()[-1].number
    print(f"token {number} of {name}, {role}. It is shown this once:")
    print(made)


@token.command("list")
def list_(project: ProjectArgument) -> None:
    """List whose tokens there are, never what they are.

    Example: slatewise label token list beach
    """
    with _opened(project, readonly=True) as opened:
        people = {person.number: person.shown for person in opened.people.all()}
        rows = [
            [
                str(one.number),
                people[one.annotator],
                one.role,
                when(one.created),
                "valid" if one.revoked is None else f"revoked {when(one.revoked)}",
            ]
            for one in opened.tokens.all()
        ]
    print_table("Tokens", ["number", "who", "role", "made", "state"], rows)


@token.command()
def revoke(
    project: ProjectArgument,
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="As list shows it.")],
) -> None:
    """End a token, also on a page that is open.

    Example: slatewise label token revoke beach 3
    """
    with _opened(project) as opened:
        opened.tokens.revoke(number)
    print(f"token {number} is revoked")


def _opened(project: Path, *, readonly: bool = False) -> Project:
    from slatewise.labeling import Project
    from slatewise.labeling.setup.project_folder import project_file

    return Project.open(project_file(project), readonly=readonly)
