"""``slatewise label ...``: label items on a page that asks the best next question.

``init``, ``status``, ``export``, ``import`` and the other commands work on a project without the page; ``serve`` and
``demo`` run the page, and ``token`` makes tokens for people on other machines.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from slatewise.cli.console import print_table, when, without_nan, working

if TYPE_CHECKING:
    from slatewise.labeling import Agreement, ProgressReport, Project
    from slatewise.labeling.plan import Plan
    from slatewise.labeling.setup.item_files import FoundTasks
    from slatewise.labeling.setup.item_matrices import ItemMatrix

_DEMO = Path("label-demo")
_HERE = ("127.0.0.1", "localhost", "::1")

app = typer.Typer(
    name="label",
    help="Label items on a page that asks the best next question.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
token = typer.Typer(
    help="Make, list and revoke tokens: others enter with them.", no_args_is_help=True, rich_markup_mode=None
)

ProjectArgument = Annotated[Path, typer.Argument(metavar="PROJECT", help="The folder that label init made.")]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="wide, long, jsonl, label-studio, npz or svmlight. Default: by the ending."),
]


@app.command()
def init(
    project: Annotated[Path, typer.Argument(metavar="PROJECT", help="The folder to make.")],
    items: Annotated[
        Path,
        typer.Option(
            help="A folder of pictures, sounds or .txt; or a table, .csv or .jsonl, with a column image, audio, text, "
            "link or file, and id if you like; or tasks of Label Studio, .json, with predictions and annotations."
        ),
    ],
    labels: Annotated[
        Path | None,
        typer.Option(
            help="The labels: one per line; or .csv with a column label; or .json. Default: those that tasks mention."
        ),
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="Features of the items, a row per item: .npz, .npy, .csv, .parquet.")
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="Scores of another model, a column per label: log-odds, or probabilities from 0 to 1."),
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="The column of features or scores with the ids of items. Default: id.")
    ] = None,
    copy: Annotated[
        bool,
        typer.Option(
            "--copy", help="Copy the files of items into the project; otherwise they must stay where they are."
        ),
    ] = False,
    plan: Annotated[
        list[str] | None,
        typer.Option(help="name=value of how to label, such as overlap=2 or share=0.1; repeatable."),
    ] = None,
) -> None:
    """Make a labeling project.

    The folder appears whole or not at all.

    Example: slatewise label init beach --items photos/ --labels labels.txt --features vectors.npz

    Texts: slatewise label init mails --items mails.csv --labels topics.txt --plan overlap=2

    From Label Studio: slatewise label init beach --items photos/tasks.json
    """
    from slatewise.labeling.setup.item_files import is_task_file
    from slatewise.labeling.setup.label_files import read_label_names
    from slatewise.labeling.setup.project_folder import check_new_folder, make_project_folder

    check_new_folder(project)  # before the reading, not after
    names, chosen = None if labels is None else read_label_names(labels), _plan(plan or [])
    with working("label init"):
        found = _found(items, names)
        given = _matrix(features, row_id), _matrix(scores, row_id)
        if given == (None, None):
            given = None, found.scores
        elif found.scores is not None:
            print("predictions of the tasks are left out: there are features or scores")
        made = make_project_folder(
            project,
            found.items,
            found.labels,
            features=given[0],
            scores=given[1],
            plan=chosen,
            copy=copy,
            answers=items if is_task_file(items) else None,
        )
    for note in made.notes:
        print(note)
    print(f"{project}: {made.n_items} items, {made.n_labels} labels")
    print(f"next: slatewise label serve {project}")


@app.command()
def serve(
    project: ProjectArgument,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's needs tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0: one that is free.", min=0, max=65535)] = 8765,
    origin: Annotated[
        str | None, typer.Option(help="The address that browsers use, as https://label.example.org.")
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A proxy on this machine forwards requests and names their clients."),
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


@app.command()
def status(
    project: ProjectArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show the progress of a project.

    Items, people, labels, how much people agree, and what the models are worth on items labeled without them.

    Example: slatewise label status beach
    """
    from slatewise.labeling import Agreement, ProgressReport

    with _opened(project, readonly=True) as opened:
        progress, agreement = ProgressReport.of(opened), Agreement.of(opened)
        models = _models(opened)
    if as_json:
        print(json.dumps(without_nan(_as_json(progress, agreement, models))))
    else:
        _print_status(project, progress, agreement, models)


@app.command()
def export(
    project: ProjectArgument,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write: .csv, .jsonl, .json, .npz, .svm.")],
    format: FormatOption = None,
    prefix: Annotated[
        str, typer.Option(help="Label Studio: a prefix of paths of files, as /data/local-files/?d=photos/.")
    ] = "",
    interface: Annotated[
        Path | None, typer.Option(help="Label Studio: also write the interface that its project needs to this file.")
    ] = None,
) -> None:
    """Write all answers to a file.

    npz and svmlight are what slatewise fit reads; wide has a cell per item and label; the others keep who and when.

    Example: slatewise label export beach beach.npz

    Every answer with who and when: slatewise label export beach answers.csv --format long

    To Label Studio: slatewise label export beach beach.json --interface beach.xml
    """
    from slatewise.core.files import atomic_file, check_target
    from slatewise.labeling import ItemData, export_answers, label_studio_config
    from slatewise.labeling.exchange.formats import FORMATS, format_of

    check_target(out)
    name = format_of(out, format)
    if name != "label-studio" and (prefix or interface is not None):
        raise ValueError(f"--prefix, --interface: expected with --format label-studio only, found {name}")
    with _opened(project, readonly=True) as opened:
        if out.exists() and out.resolve().is_relative_to(opened.path.resolve().parent):
            raise ValueError(f"{out}: expected a file that is no part of the project, found one")
        options: dict[str, Any] = {}
        if FORMATS[name].needs_features:
            data = ItemData.attached(opened)
            if data is None:
                raise ValueError(f"--format {name}: expected features of the items, found none in {project}: try .csv")
            options["X"] = data.X
        if prefix:
            options["prefix"] = prefix
        export_answers(opened, out, name, **options)
        if interface is not None:
            with atomic_file(interface) as file:
                file.write(f"{label_studio_config(opened)}\n".encode())
        known = opened.known().values
    print(f"{out}: {int((known >= 0).any(axis=1).sum())} of {len(known)} items, {int((known >= 0).sum())} labels known")


@app.command("import")
def import_(
    project: ProjectArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file as export writes it, or of Label Studio.")],
    format: FormatOption = None,
    annotator: Annotated[str, typer.Option(help="The annotator of answers for which the file names none.")] = "import",
    renamed: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="THEIRS=OURS", help="The name in the project of a label of the file; repeatable."
        ),
    ] = None,
) -> None:
    """Take answers from a file, all or none.

    Example: slatewise label import beach old.csv --annotator "last year" --map ocean=sea
    """
    from slatewise.core.errors import DataError
    from slatewise.labeling import import_answers

    labels = dict(_pair(text) for text in renamed or [])
    with _opened(project) as opened:
        try:
            taken = import_answers(opened, file, format, annotator=annotator, labels=labels)
        except DataError as error:
            if "name of a label" not in error.expected:
                raise
            hint = f"{error.expected} (--map THEIRS=OURS says which one is meant)"
            raise DataError(error.name, error.line, error.column, hint, error.found) from None
    print(f"{project}: {taken.answers} statements of {taken.people} people about {taken.items} items")


app.add_typer(token, name="token")


@token.command()
def make(
    project: ProjectArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The person who gets the token.")],
    role: Annotated[str, typer.Option(help="annotator, reviewer, or owner.")] = "annotator",
) -> None:
    """Make a token and show it, only this once.

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
    """List the owners of tokens, never the tokens.

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


@app.command()
def rename(
    project: ProjectArgument,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The name of the label.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
) -> None:
    """Give a label another name.

    Its answers stay, and files and models with the old name are still understood.

    Example: slatewise label rename beach ocean sea
    """
    with _opened(project) as opened:
        opened.labels.rename(old, new)
    print(f"{project}: {old} is now {new}")


@app.command()
def forget(
    project: ProjectArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name to remove.")],
) -> None:
    """Remove a person's name.

    The answers stay under a pseudonym, and the person's tokens end.

    Example: slatewise label forget beach Ann
    """
    with _opened(project) as opened:
        numbers = [person.number for person in opened.people.all() if person.name == name]
        if not numbers:
            raise ValueError(f"{name}: expected the name of somebody in {project}, found nobody")
        pseudonym = opened.people.forget(numbers[0])
    print(f"{project}: {pseudonym} from now on; backups and exports of before still have the name")


@app.command()
def audit(project: ProjectArgument) -> None:
    """List who entered, exported, trained, renamed and so on, oldest first.

    Example: slatewise label audit beach
    """
    with _opened(project, readonly=True) as opened:
        people = {person.number: person.shown for person in opened.people.all()}
        rows = [
            [when(one.time), people.get(one.annotator or 0, ""), one.what, json.dumps(one.detail) if one.detail else ""]
            for one in opened.audit.all()
        ]
    print_table("Audit log", ["when", "who", "what", "more"], rows)


@app.command()
def backup(
    project: ProjectArgument,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, a project (.db) by itself.")],
) -> None:
    """Copy all answers into one file, also while the page is used.

    Features, models and items are other files of the folder: copy these as they are.

    Example: slatewise label backup beach beach-monday.db
    """
    from slatewise.core.files import check_target

    check_target(out)
    with _opened(project, readonly=True) as opened:
        if out.exists() and out.samefile(opened.path):
            raise ValueError(f"{out}: expected another file than the project itself")
        opened.backup(out)
    print(f"{out}: a copy of {project}")


def _say(address: str) -> None:
    print(f"labeling page: {address} (Ctrl-C ends it)", flush=True)
    where = urlsplit(address)
    if where.scheme == "http" and where.hostname not in _HERE:
        print(
            "not encrypted: others in the network can read tokens and answers; a proxy with TLS helps",
            flush=True,
        )


def _opened(project: Path, *, readonly: bool = False) -> Project:
    from slatewise.labeling import Project
    from slatewise.labeling.setup.project_folder import project_file

    return Project.open(project_file(project), readonly=readonly)


def _found(items: Path, labels: list[str] | None) -> FoundTasks:
    from slatewise.labeling.setup.item_files import FoundTasks, is_task_file, read_items, read_task_items

    if is_task_file(items):
        return read_task_items(items, labels)
    if labels is None:
        raise ValueError("--labels: expected a file with a label per line, found nothing: only tasks mention labels")
    return FoundTasks(read_items(items), labels, None)


def _matrix(path: Path | None, row_id: str | None) -> ItemMatrix | None:
    from slatewise.labeling.setup.item_matrices import read_matrix

    return None if path is None else read_matrix(path, row_id)


def _plan(settings: list[str]) -> Plan:
    from slatewise.labeling.plan import Plan

    names, given = [field.name for field in fields(Plan)], dict[str, Any]()
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            raise ValueError(f"--plan: expected name=value with a name from {', '.join(names)}, found {text!r}")
        try:
            given[name] = json.loads(value)
        except json.JSONDecodeError:
            given[name] = value
    try:
        return Plan(**given)
    except ValueError as error:
        raise ValueError(f"--plan {error}") from None


def _pair(text: str) -> tuple[str, str]:
    theirs, equals, ours = text.partition("=")
    if not equals or not theirs or not ours:
        raise ValueError(f"--map: expected THEIRS=OURS, found {text!r}")
    return theirs, ours


def _models(project: Project) -> list[dict[str, Any]]:
    from slatewise.labeling import qualities

    current, measured = project.models.current(), {quality.version: quality for quality in qualities(project)}
    found: list[dict[str, Any]] = []
    for version in project.models.all():
        quality = measured.get(version.number)
        in_use = current is not None and current.number == version.number
        one = {"version": version.number, "in_use": in_use, "note": version.note, "created": version.created}
        found.append(one | {"calibration_set": None if quality is None else quality.as_json()})
    return found


def _as_json(progress: ProgressReport, agreement: Agreement, models: list[dict[str, Any]]) -> dict[str, Any]:
    counted = asdict(progress)
    counted["labels"] = [label._asdict() for label in progress.labels]
    counted["people"] = [person._asdict() for person in progress.people]
    agreed = {
        "units": agreement.n_units,
        "alpha": agreement.alpha,
        "alpha_by_label": agreement.alpha_by_label.tolist(),
        "pairs": [pair._asdict() for pair in agreement.pairs],
        "disputes": [dispute._asdict() for dispute in agreement.disputes],
    }
    return {"progress": counted, "agreement": agreed, "models": models}


def _print_status(project: Path, progress: ProgressReport, agreement: Agreement, models: list[dict[str, Any]]) -> None:
    print(f"{project}: {progress}")
    hours = f"{progress.hours_left:.1f}" if progress.hours_left == progress.hours_left else "not known yet"
    print(
        f"begun: {progress.begun} items; without the model: {progress.calibration_done} of {progress.calibration_items}"
    )
    print(f"hours of one person that are left: {hours}")
    if progress.people:
        columns = ["who", "answers", "done", "skipped", "seconds an answer", "items an hour"]
        print_table(
            "People",
            columns,
            [
                [
                    one.name,
                    *(str(n) for n in (one.answers, one.done, one.skipped)),
                    _number(one.seconds_per_answer),
                    _number(one.items_per_hour),
                ]
                for one in progress.people
            ],
        )
    rows = [[one.name, str(one.yes), str(one.no), str(one.not_known)] for one in progress.labels]
    print_table("Labels", ["label", "yes", "no", "don't know"], rows)
    if agreement.n_units:
        to_review = f"; {len(agreement.disputes)} to review" if agreement.disputes else ""
        alpha = _number(agreement.alpha, 3) or "not defined"
        print(f"agreement: alpha {alpha} on {agreement.n_units} labels that several answered{to_review}")
        names = {one.annotator: one.name for one in progress.people}
        print_table("Agreement", ["who", "labels of both", "same", "kappa"], _pair_rows(agreement, names))
    if models:
        columns = ["version", "from", "items measured", "break-even", "questions"]
        print_table("Models", columns, [_model_row(one) for one in models])


def _pair_rows(agreement: Agreement, names: dict[int, str]) -> list[list[str]]:
    return [
        [
            " and ".join(names[who] for who in pair.annotators),
            str(pair.n_common),
            f"{pair.same:.3f}",
            _number(pair.kappa, 3),
        ]
        for pair in agreement.pairs
    ]


def _model_row(model: dict[str, Any]) -> list[str]:
    quality: dict[str, Any] = model["calibration_set"] or {}
    figures = [quality.get("break_even"), quality.get("questions")]
    used = " (in use)" if model["in_use"] else ""
    shown = [_number(figure, 3) for figure in figures]
    return [f"{model['version']}{used}", model["note"], str(quality.get("n_items", "")), *shown]


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None or value != value else f"{value:.{digits}f}"
