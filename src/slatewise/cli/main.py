"""The commands: each reads its arguments, calls the library and prints a table. Nothing is computed here.

Bad input ends with exit code 2 and one line on stderr that names the place and what was expected; ``--debug`` shows the
traceback. Tables go to stdout, progress to stderr if it is a terminal.
"""

from __future__ import annotations

import json
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from slatewise._version import __version__
from slatewise.cli import label
from slatewise.cli.console import as_options, check_target, print_table, without_nan, working
from slatewise.cli.options import (
    FILTER_OPTIONS,
    NO_FILTERS,
    ClusterOptions,
    DataOptions,
    FilterOptions,
    with_options,
)
from slatewise.core.errors import ProjectError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(
    name="slatewise",
    help="Learn to rank whole lists whose items interact, trained directly for the ranking measure.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(label.app)

JsonOption = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this JSON file.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="A smaller run: minutes become seconds.")]
_SERVE_NEEDS = ("starlette", "uvicorn", "msgspec", "prometheus_client")


@app.callback(invoke_without_command=True)
def about(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """Learn to rank whole lists whose items interact, trained directly for the ranking measure.

    --debug, anywhere on the line, shows the traceback of an error.
    """
    if version:
        print(f"slatewise {__version__}")
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The HTML report to write.")] = Path("demo/report.html"),
    picture: Annotated[Path | None, typer.Option(help="Also write its first picture to this file (.svg).")] = None,
) -> None:
    """Train on embedded data, print one table, write a report with plots.

    Example: slatewise demo --out demo/report.html
    """
    from slatewise.cli.demo import COLUMNS, run_demo
    from slatewise.report import write_picture

    for name, path in (("--out", out), ("--picture", picture)):
        if path is not None and path.exists():  # folders that are missing are made
            check_target(name, path)
    with working("demo"):
        result = run_demo()
    result.page().write(out)
    if picture is not None:
        write_picture(picture, result.overview())
    print_table("What the structure of a list is worth", COLUMNS, result.cells())
    print(f"report: {out}")


@app.command()
@with_options
def fit(
    system: Annotated[
        str,
        typer.Argument(
            help="What to train: cstar, cstar-margin, metric, margin, matching, collaborative, latent, "
            "latent-features, sessions, neighbors, cooccurrence, feature."
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(
            help="Rows with query ids, with labels (cstar: also CSV, JSON lines, Parquet; latent-features) or classes "
            "(metric), pairs of users and items (collaborative), sessions or pairs (latent), sessions or CSV of events "
            "(sessions, neighbors, cooccurrence): a file, or the name of a data set, whose training part is read."
        ),
    ],
    options: DataOptions,
    cluster: ClusterOptions,
    out: Annotated[Path, typer.Option(help="The model file to write (.safetensors).")],
    param: Annotated[
        list[str] | None,
        typer.Option(help="name=value, as the estimator's argument, or of a part of it (loss__k=3); repeatable."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file with the state of the fit; a fit that was killed continues from it.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="The column of weights in a file of pairs: its number, from 0, or name.")
    ] = None,
) -> None:
    """Train a ranker on a file and save it.

    Example: slatewise fit cstar photos.csv --tags tags --separator "|" --id photo --out model.safetensors
    """
    from slatewise.cli.tasks import fit_arguments, task_named

    check_target("--out", out, data)  # before the training, not after
    task = task_named(system).reading(replace(options, weight=weight))
    estimator = task.make(param or [])
    check_target("--checkpoint", checkpoint, data, out)
    arguments = fit_arguments(estimator, checkpoint)
    with working(f"fit {system}"), cluster.open():
        task.fit(estimator, data, **arguments)
    estimator.save(out)
    card = estimator.model_card_
    print(f"{out}: {type(estimator).__name__} from {card.n_lists} lists, {card.n_rows} rows")


@app.command()
@with_options
def rank(
    model: Annotated[Path, typer.Argument(help="A model file that fit wrote; with --url, its name at the service.")],
    data: Annotated[
        str,
        typer.Argument(
            help="A file like that of fit, with or without labels: SVMlight rows may start with qid: or a feature, "
            "tables lack the column label, npz lacks Y, ARFF its xml, CSV its class; pairs and sessions may be one "
            "query per line. Or the name of a data set, of which the test part is read."
        ),
    ],
    options: DataOptions,
    filters: FilterOptions,
    cluster: ClusterOptions,
    out: Annotated[Path, typer.Option(help="The run to write: .run or .txt (TREC), .csv or .parquet.")],
    top: Annotated[int, typer.Option(min=1, help="The number of documents of each query to keep.")] = 10,
    url: Annotated[
        str | None,
        typer.Option(help="Let a service rank, as http://127.0.0.1:8000; its token is in SLATEWISE_TOKEN."),
    ] = None,
) -> None:
    """Rank every query of a file with a saved model.

    Example: slatewise rank model.safetensors test.txt --top 10 --out test.run

    Rows of a table: slatewise rank model.safetensors new.csv --id photo --out new.csv.run

    Many queries, on a Ray cluster: slatewise rank model.safetensors queries.parquet --cluster auto --out answers/

    The next items of sessions: slatewise rank model.safetensors today.csv --exclude-seen --out today.csv.run
    """
    from slatewise import load
    from slatewise.cli.tasks import task_for_model
    from slatewise.data.trec import writer_for

    if cluster.check(options, filters):
        if url is not None:
            raise ValueError("--cluster: expected without --url, found both")
        if out.exists() and not out.is_dir():
            raise ValueError(f"--out: expected a folder with --cluster, found a file, {out}")
        from slatewise.cluster import rank as rank_on_cluster

        with working("rank"), cluster.open() as opened:
            n_lines = rank_on_cluster(opened, model, data, out, top)
        print(f"{out}: {n_lines} lines")
        return
    check_target("--out", out, None if url is not None else model, data)
    write = writer_for(out)
    if url is not None:
        if filters.exclude is not None:
            raise ValueError("--exclude: expected without --url, found both")
        from slatewise.cli.remote import Remote

        ranker = Remote(url, str(model))
        task = ranker.task
    else:
        ranker = load(model)
        task = task_for_model(ranker)
    task = task.reading(options, filters)
    with working("rank"):
        run = task.run(ranker, data, top)
    write(out, run)
    print(f"{out}: {len(run.scores)} lines")


@app.command()
def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL...", help="Model files that fit wrote, or NAME=FILE; default name: that of the file."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's needs tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: one that is free.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file of tokens or digests, one per line; every request must send one of them."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes; they share the memory of the models.")] = 1,
    origin: Annotated[
        str | None, typer.Option(help="The only address of the service, as https://rank.example.org.")
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy on this machine forwards requests and names their clients.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of one answer; default: all cores, divided by the workers.")
    ] = None,
    make_token: Annotated[
        Path | None, typer.Option(help="Add a new token to this file, print it, only this once, and stop.")
    ] = None,
) -> None:
    """Answer over HTTP with saved models, until Ctrl-C.

    Example: slatewise serve songs.safetensors --port 8000

    For others: slatewise serve --make-token tokens.txt, then add --host 0.0.0.0 --token-file tokens.txt
    """
    missing = [name for name in _SERVE_NEEDS if find_spec(name) is None]
    if missing:
        raise ValueError(f"serve: expected {', '.join(missing)} to be installed: pip install 'slatewise[serve]'")
    from slatewise.core.running.executor import thread_count
    from slatewise.serve.settings import Settings, add_token
    from slatewise.serve.supervisor import serve as run_service

    if make_token is not None:
        print(add_token(make_token))
        return
    tokens = None if token_file is None else str(token_file)
    n_jobs = threads or max(thread_count(None) // workers, 1)
    settings = Settings(tuple(models or []), host, port, tokens, origin, behind_proxy, n_jobs)

    def print_address(address: str) -> None:
        with suppress(BrokenPipeError):  # the service runs even if nobody reads its output
            print(f"service: {address} (Ctrl-C ends it)", flush=True)

    raise typer.Exit(run_service(settings, workers, print_address))


@app.command()
@with_options
def evaluate(
    system: Annotated[
        Path, typer.Argument(metavar="RUN|MODEL", help="A run that rank wrote, or a model file that fit wrote.")
    ],
    data: Annotated[
        str,
        typer.Argument(
            help="Judgements: TREC qrels or a file like that of fit; or the name of a data set: its test part."
        ),
    ],
    options: DataOptions,
    filters: FilterOptions,
    cluster: ClusterOptions,
    measures: Annotated[
        str, typer.Option(help="Comma-separated, as ndcg@10,map,p@5,mrr,recall@20,auc.")
    ] = "ndcg@10,map",
    preset: Annotated[str | None, typer.Option(help="Measure as trec_eval, sklearn, lightgbm, ... does.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    made_by: Annotated[
        str | None,
        typer.Option(
            "--system", help="What made a run (cstar, metric, ...), if the file of judgements does not show it."
        ),
    ] = None,
    catalogue: Annotated[
        str | None,
        typer.Option(help="For a run of metric: the file that fit read, if it is not DATA."),
    ] = None,
) -> None:
    """Measure a run or a model against judgements.

    Example: slatewise evaluate test.run test.qrels --measures ndcg@10,map --json

    Rows of a table: slatewise evaluate model.safetensors test.csv --labels "tag:" --measures bep,map
    """
    from slatewise import load, metrics
    from slatewise.cli.inputs import read_run
    from slatewise.cli.runs import judgements_for, measure_run
    from slatewise.cli.tasks import task_for_model

    names = [name.strip() for name in measures.split(",")]
    tool = None if preset is None else metrics.preset(preset)
    parsed = [metrics.parse(name, tool) for name in names]
    if cluster.check(options, filters):
        from slatewise.cluster import evaluate as evaluate_on_cluster

        with working("evaluate"), cluster.open() as opened:
            figures = evaluate_on_cluster(opened, system, data, parsed)
    elif _is_model(system):
        if made_by is not None or catalogue is not None:
            raise ValueError("--system, --catalogue: expected with a run, found a model, which knows both")
        model = load(system)
        with working("evaluate"):
            figures = task_for_model(model).reading(options, filters).evaluate(model, data, parsed)
    else:
        if filters != NO_FILTERS:
            raise ValueError(f"{FILTER_OPTIONS}: expected with a model, found a run, which shows what it has")
        run = read_run(str(system))
        judgements = judgements_for(run, data, made_by, options, catalogue)
        figures = measure_run(run, str(system), judgements, data, parsed)
    values = dict(zip(names, figures, strict=True))
    if as_json:
        print(json.dumps(without_nan(values)))
    else:
        print_table(f"{system} on {data}", ["measure", "mean"], [[name, f"{v:.4f}"] for name, v in values.items()])


@app.command()
def reproduce(
    paper: Annotated[
        str,
        typer.Argument(help="Which tables: cstar, tags, mlr, rankmatch, lasr, sessions, letor, stopping, or defaults."),
    ],
    data: Annotated[str | None, typer.Option(help="A data set's name or a path instead of the paper's own.")] = None,
    quick: QuickOption = False,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Cut the folds at random by this seed (cstar, defaults, lasr, mlr, sessions, tags)."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep finished parts in this folder, and go on from there (tags, sessions).")
    ] = None,
    as_json: JsonOption = None,
    report: Annotated[Path | None, typer.Option(help="Write tables and figures to this HTML page.")] = None,
) -> None:
    """Print a published table with our figures beside the printed ones.

    Example: slatewise reproduce letor --json letor.json
    """
    check_target("--json", as_json, data)
    check_target("--report", report, data, as_json)
    with working(f"reproduce {paper}"):
        result = of_the_clone("slatewise_papers").reproduce(paper, data, quick, seed, keep)
    if sys.stdout.isatty():
        print_table(f"{result.paper} on {result.data} (in parentheses: published)", *result.table())
    else:
        rows = [
            [
                row.name,
                name,
                _figure(value),
                _figure(row.paper[name]) if row.paper is not None and name in row.paper else "",
            ]
            for row in result.rows
            for name, value in row.measured.items()
        ]
        print_table(result.paper, ["row", "figure", "measured", "published"], rows)
    _write_json(as_json, result.as_json())
    if report is not None:
        result.page().write(report)


@app.command()
def datasets() -> None:
    """List the data sets, their terms, and whether they are on this machine.

    Example: SLATEWISE_DATA=~/data slatewise datasets
    """
    from slatewise import datasets as sets

    rows = [sets.describe(name) for name in sets.names()]
    print_table(
        "Data sets",
        ["name", "kind", "size", "here", "terms"],
        [[row.name, row.kind, row.size, "yes" if row.present else "no", row.terms] for row in rows],
    )


@app.command()
def bench(
    what: Annotated[
        str,
        typer.Argument(
            help="What to measure: metrics, reader, star, cstar, label, labels, quadratic, metric, permanent, warp, "
            "topk, bag, neighbors, serve, gpu."
        ),
    ],
    quick: QuickOption = False,
    as_json: JsonOption = None,
) -> None:
    """Measure ratios against peers in one run.

    Example: slatewise bench metrics --json metrics.json
    """
    from dataclasses import asdict

    check_target("--json", as_json)
    with working(f"bench {what}"):
        table = of_the_clone("slatewise_papers.bench").run_benchmark(what, quick)
    cells = [
        [
            row.what,
            f"{row.ours:.4g} {row.unit}",
            row.peer or "",
            *(
                ("", "")
                if row.theirs is None or row.ratio is None
                else (f"{row.theirs:.4g} {row.unit}", f"{row.ratio:.2f}x")
            ),
            row.bar,
        ]
        for row in table.rows
    ]
    print_table(f"bench {table.name}", ["what", "ours", "peer", "theirs", "ratio", "bar"], cells)
    for line in [*table.remarks, *(f"left out: {peer}" for peer in table.left_out)]:
        print(line)
    _write_json(as_json, asdict(table))


def of_the_clone(module: str) -> Any:
    """Return a module of ``slatewise_papers``, which a clone has and an installed wheel has not."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "slatewise_papers":
            raise
        raise ValueError(
            "reproduce and bench need the repository: clone it and `pip install -e .` there; wheels do not have them"
        ) from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 a failure of ours, 2 bad input."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"] or ["--help"]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            sys.exit(app(words, prog_name="slatewise", standalone_mode=False) or 0)
    except typer.Abort:
        sys.exit(130)
    except (TyperException, ValueError, OSError, ImportError, ProjectError) as error:
        if debug:
            raise
        _print_line(_text_of(error))
        sys.exit(2)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning without its position in the code, in the words of the options."""
    _print_line(as_options(str(message)))


def _print_line(text: str) -> None:
    """Print an error or a warning as one line on stderr."""
    print(f"slatewise: {printable(' '.join(text.split()))}", file=sys.stderr)


def _text_of(error: Exception) -> str:
    match error:
        case TyperException():
            return error.format_message()
        case OSError(filename=str() | bytes() | Path()):
            return f"{error.filename}: {error.strerror}"
        case _:
            return str(error)


def _figure(value: float) -> str:
    """Four decimals, or what is left of a number too small for them."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 1e-3 else f"{value:.2g}"


def _is_model(path: Path) -> bool:
    """Tell a model file by its ending or, under another name, by its start: a length and a JSON header."""
    if path.suffix == ".safetensors" or not path.is_file():
        return path.suffix == ".safetensors"
    with open(path, "rb") as file:
        start = file.read(9)
    return start[3:] == bytes(5) + b"{"  # no header is longer than three bytes can say


def _write_json(path: Path | None, value: dict[str, Any]) -> None:
    if path is None:
        return
    from slatewise.core.files import atomic_path

    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(without_nan(value), indent=1) + "\n", encoding="utf-8")
    print(f"figures: {path}")
