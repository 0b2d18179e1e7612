"""Measure a run against judgments: which kind of data they are, whether the names fit, and where lists are cut."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from slatewise import datasets, metrics
from slatewise.cli.inputs import (
    first_fields,
    has_labels,
    has_query_ids,
    is_json_lines,
    is_qrels,
    is_table_of_events,
    is_table_of_text,
)
from slatewise.cli.options import DEFAULT_DATA, DataOptions
from slatewise.cli.tasks import Judgements, Task, task_named
from slatewise.data import read_qrels
from slatewise.data.records import Run
from slatewise.metrics.evaluate import Ends, evaluate_with_ends
from slatewise.metrics.measure import mean

_SYSTEMS = {"multi-label": "cstar", "ranking": "margin", "labelled": "metric", "sessions": "latent"}
"""By the kind of a named data set."""


def judgements_for(
    run: Run,
    data: str,
    system: str | None = None,
    options: DataOptions = DEFAULT_DATA,
    catalogue: str | None = None,
) -> Judgements:
    """Read the judgments of a run: TREC qrels, or whatever fit reads.

    ``system`` is what made the run. By default the file tells: rows with ``qid:`` are documents, other rows of features
    have labels (classes, if the run's documents are none of the labels), as do JSON lines and files with options of
    tagged rows. CSV and TSV are pairs (events, if the header has their columns and the run's queries are not users;
    classes, if the queries are the numbers of the lines). Other lines are sessions.
    """
    if system is None and options.tagged:
        system = "cstar"
    if system is None and options.events:
        system = "sessions"
    task: Task | None = None
    if system is not None or options != DEFAULT_DATA or not is_qrels(data):
        if system is None and Path(data).exists() and not Path(data).is_file():
            expected = "expected a plain file, because judgements are looked at twice"
            raise ValueError(f"{data}: {expected}, found something else")
        task = task_named(_system_of(run, data) if system is None else system).reading(options)
    if catalogue is not None and (task is None or "catalogue" not in task.takes):
        raise ValueError("--catalogue: expected with rows that have classes, for metric, only")
    if task is None:
        return Judgements(read_qrels(data))
    judgements = task.judgements(data, catalogue)
    if judgements.n_rows is not None:
        known = {str(row) for row in range(judgements.n_rows)}
        strange = next((name for name in run.doc_ids.tolist() if name not in known), None)
        if strange is not None:
            expected = f"a run of the {judgements.n_rows} rows of {catalogue or data}, by number from 0"
            raise ValueError(f"--catalogue: expected {expected}, found {strange!r}: is it the file that fit read?")
    return judgements


def measure_run(
    run: Run, name: str, judgements: Judgements, data: str, measures: Sequence[metrics.Measure]
) -> list[float]:
    """Measure a run, called ``name``, against the judgments of ``data``; warn if its lists end too early for it."""
    found, ends = evaluate_with_ends(measures, run, judgements.qrels, judgements.missing)
    ranked = run.doc_ids.tolist()
    if ranked and not set(ranked) & set(judgements.qrels.doc_ids.tolist()):
        what = f"none of the {len(set(ranked))} documents of the run, {ranked[0]!r} the first, is judged"
        warnings.warn(f"{name}: {what} in {data}: are they named alike?", stacklevel=2)
    else:
        _warn_of_ends(name, ends)
    return [mean(values) for values in found.values.values()]


def _warn_of_ends(name: str, ends: Ends) -> None:
    """Warn of lists that are cut before a measure has seen all ranks it needs, and of queries without a list.

    A cut leaves the same number of documents in each list; a list that is shorter than others ended by itself.
    """
    n_lists, longest = len(ends.lengths), int(ends.lengths.max(initial=0))
    found = {measure: where & (ends.lengths == longest) for measure, where in ends.too_early.items()}
    cut = np.any(list(found.values()), axis=0)
    if longest and cut.any():
        names = ", ".join(measure for measure, where in found.items() if where.any())
        what = f"{cut.sum()} of {n_lists} lists end after {longest} documents, too early for {names}"
        lost = f"{ends.n_missing[cut].sum()} relevant documents behind the ends count as not found"
        warnings.warn(f"{name}: {what}: {lost}; rank with a larger --top if there are more", stacklevel=3)
    n_empty = int(np.sum(ends.lengths == 0))
    if n_empty:
        warnings.warn(f"{name}: {n_empty} of {n_lists} queries have no list and count as 0", stacklevel=3)


def _system_of(run: Run, data: str) -> str:
    """Return the command that reads such data."""
    if not Path(data).exists() and data in datasets.names():
        kind = datasets.describe(data).kind
        if kind not in _SYSTEMS:
            raise ValueError(f"{data}: expected a data set of {', '.join(_SYSTEMS)}, found one of {kind}")
        return _SYSTEMS[kind]
    if is_table_of_text(data):
        first = first_fields(data, "\t" if ".tsv" in data else ",")
        queries, rows = set(run.qid.tolist()), [str(row) for row in range(len(first))]
        if is_table_of_events(data, queries):
            return "sessions"
        is_by_row = queries == set(rows) or queries == set(rows[:-1])  # the first line may name the columns
        return "metric" if is_by_row and not queries <= set(first) else "latent"
    if data.endswith((".npz", ".arff")) or is_json_lines(data):
        return "cstar"
    if has_query_ids(data):
        return "margin"
    if not has_labels(data):
        return "latent"
    labels = first_fields(data)
    is_set = any("," in label or ":" in label for label in labels)
    return "cstar" if is_set or set(run.doc_ids.tolist()) <= set(labels) else "metric"
