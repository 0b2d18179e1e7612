"""Options that several commands share, each declared once: how data is read, what is shown, and the cluster.

A command takes a group as one parameter, ``data_options: DataOptions``; :func:`with_options` gives Typer a parameter
for each field of the group.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

PAIR_OPTIONS, TAG_OPTIONS = "--header", "--labels, --tags, --separator, --id, --features"
EVENT_OPTIONS, FILTER_OPTIONS = "--columns, --gap", "--exclude-seen, --exclude-last, --exclude, --candidates"


@dataclass(frozen=True)
class DataOptions:
    """How to read a file: options of pairs and sessions, of tables of tagged rows, and of tables of events."""

    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line of a file of pairs or sessions names its columns; default: if it has "
            "well-known names.",
        ),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="The label columns of a table: a prefix, or names with commas."),
    ] = None
    tags: Annotated[
        str | None,
        typer.Option("--tags", help="The column of a table with all tags of a row (JSON lines: the key)."),
    ] = None
    separator: Annotated[
        str | None, typer.Option("--separator", help="The text between two tags of such a column, as '|'.")
    ] = None
    id: Annotated[
        str | None, typer.Option("--id", help="The column of a table with the ids of its rows (JSON lines: the key).")
    ] = None
    features: Annotated[
        str | None,
        typer.Option(
            "--features", help="The feature columns of a table: a prefix or names with commas; default: all others."
        ),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            help="The names of the columns of a table of events, if not session, item, time and user: item=sku.",
        ),
    ] = None
    gap: Annotated[
        float | None,
        typer.Option(
            "--gap", help="The longest pause within a session, in seconds, for a table of events without sessions."
        ),
    ] = None
    weight: str | None = None
    """The column of a file of pairs with weights, by number from 0 or by name; an option of fit alone."""

    @property
    def tagged(self) -> bool:
        """Whether there are options of tables of tagged rows."""
        return any(value is not None for value in (self.labels, self.tags, self.separator, self.id, self.features))

    @property
    def events(self) -> bool:
        """Whether there are options of tables of events."""
        return self.columns is not None or self.gap is not None


@dataclass(frozen=True)
class FilterOptions:
    """Which items to show."""

    seen: Annotated[bool, typer.Option("--exclude-seen", help="Do not show the items of a session.")] = False
    last: Annotated[
        bool,
        typer.Option("--exclude-last", help="Do not show the last item of a session, or an id as its own item."),
    ] = False
    exclude: Annotated[
        Path | None,
        typer.Option("--exclude", help="A CSV or TSV file of pairs, a query and an item not to show."),
    ] = None
    candidates: Annotated[
        Path | None, typer.Option("--candidates", help="A file with the ids of the only items to show.")
    ] = None

    @property
    def exclude_seen(self) -> bool | Literal["last"]:
        """The argument of ``rank``; all items of a session include the last one."""
        return self.seen or ("last" if self.last else False)


@dataclass(frozen=True)
class ClusterOptions:
    """The Ray cluster to work on, if any."""

    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            help="Work on a Ray cluster: 'auto', 'ray://host:port', or 'local'. rank and evaluate take Parquet files "
            "then, and rank writes a folder of them.",
        ),
    ] = None
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="With --cluster: the number of processes.")
    ] = None

    def check(self, data: DataOptions | None = None, filters: FilterOptions | None = None) -> bool:
        """Return whether there is a cluster; refuse options that its workers do not have."""
        if self.cluster is None:
            if self.workers is not None:
                raise ValueError("--workers: expected with --cluster, found it alone")
            return False
        if data is not None and (data.header is not None or data.tagged):
            raise ValueError(f"--header, {TAG_OPTIONS}: expected without --cluster, found both")
        if (filters is not None and filters != NO_FILTERS) or (data is not None and data.events):
            raise ValueError(f"{FILTER_OPTIONS}, {EVENT_OPTIONS}: expected without --cluster, found both")
        return True

    def open(self) -> AbstractContextManager[Any]:
        """Open the cluster; without one, do nothing."""
        if not self.check():
            return nullcontext()
        from slatewise import cluster

        return cluster.ray(None if self.cluster == "local" else self.cluster, self.workers)


DEFAULT_DATA = DataOptions()
NO_FILTERS = FilterOptions()


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose parameters of the groups above are replaced by a parameter for each of their options."""
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if group not in (DataOptions, FilterOptions, ClusterOptions):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(group, include_extras=True)
        options = [field for field in fields(group) if hasattr(hints[field.name], "__metadata__")]
        groups[parameter.name] = group, [field.name for field in options]
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
            )
            for field in options
        ]

    @wraps(command)
    def run(**given: Any) -> Any:
        for name, (group, names) in groups.items():
            given[name] = group(**{option: given.pop(option) for option in names})
        return command(**given)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run
