"""How far a reader walks from ``fit`` or ``rank`` to the work: functions, files, and returns to a file already left.

    python -m tools.walks [NAME ...]

Counts the functions of the estimator's own packages that are entered at most three calls below the method until the
learner's loop starts, each once, in the order in which they are first entered. ``latent``, ``sessions``, ``factors``,
``recommend`` and ``estimators`` count as one. What ``core``, ``data``, ``persistence`` and other packages do is
behind their interfaces, and not counted.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"

import itertools

import slatewise

SOURCE = Path(slatewise.__file__).parent
DEEPEST = 3
SHARED = ("estimators", "factors", "latent", "recommend", "sessions")
LIMITS = {"fit": (20, 6, 3), "rank": (15, 6, 3)}


class _Reached(Exception):
    """The learner's loop starts."""


@dataclass
class Walk:
    """The functions entered so far."""

    packages: tuple[str, ...]
    stop_at: frozenset[str]
    seen: dict[CodeType, str] = field(default_factory=dict[CodeType, str])
    depth: int = 0
    reached: str = ""

    def watch(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call; take part in no other event."""
        code = frame.f_code
        place = self._place(code)
        if place is None:
            return
        if event == "return":
            self.depth -= 1
        elif event == "call":
            self.depth += 1
            if self.reached:
                return
            name = f"{place.removesuffix('.py').replace('/', '.')}:{code.co_qualname}"
            if code.co_name in self.stop_at or code.co_qualname in self.stop_at:
                self.reached = name
                raise _Reached(name)
            is_own = place.split("/")[0] in self.packages and "/kernels/" not in place and "/gpu/" not in place
            if is_own and not code.co_name.startswith("<") and self.depth <= DEEPEST + 1:
                self.seen.setdefault(code, name)

    def _place(self, code: CodeType) -> str | None:
        path = code.co_filename
        return path[len(str(SOURCE)) + 1 :] if path.startswith(f"{SOURCE}{os.sep}") else None

    def figures(self) -> tuple[int, int, int]:
        """Return functions, files, and returns to a file already left."""
        files = [name.partition(":")[0] for name in self.seen.values()]
        returns, left = 0, set[str]()
        for before, now in itertools.pairwise(files):
            if now != before:
                left.add(before)
                returns += now in left
        return len(files), len(set(files)), returns


def walk(call: Callable[[], Any], packages: tuple[str, ...], stop_at: set[str]) -> Walk:
    """Trace a call until a function named in ``stop_at`` is entered, or to the end."""
    found = Walk(packages, frozenset(stop_at))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.setprofile(found.watch)
        try:
            call()
        except _Reached:
            pass
        finally:
            sys.setprofile(None)
    return found


def subjects() -> dict[str, tuple[Callable[[], Any], tuple[str, ...], set[str]]]:
    """Return the calls that are traced, the packages that are the estimator's own, and where the loop starts."""
    from slatewise import (
        BestFeatureRanker,
        CStarMarginRanker,
        CStarRanker,
        GraphMatcher,
        LatentFeatureRanker,
        LatentRanker,
        MarginRanker,
        MatchingRanker,
        MetricRanker,
        SessionNeighbors,
        SessionRanker,
        datasets,
    )
    from slatewise.factors import Factors

    scenes = datasets.make_label_scenes(24, random_state=0)
    queries = datasets.make_queries(n_queries=6, random_state=0)
    sessions = datasets.make_sessions(60, 20, random_state=0).sessions
    shapes = datasets.make_silhouettes(n_pairs=4, n_points=5, random_state=0)
    edges = [datasets.edge_features(a, b) for a, b in zip(shapes.source, shapes.target, strict=True)]
    pairs, tags, documents = sessions.pairs(), (scenes.X, scenes.Y), (queries.X, queries.y, queries.qid)
    graphs = (edges, list(shapes.matches))
    metric, matching, cstar = ("metric_learning", *SHARED), ("matching", *SHARED), ("cstar", *SHARED)
    latent, rows = LatentRanker(4, epochs=1), (scenes.X, scenes.Y.argmax(axis=1))
    next_items = SessionRanker(Factors(n_components=4, epochs=1))
    fits = {
        "BestFeatureRanker": (BestFeatureRanker(), documents, SHARED, {"_columns"}),
        "MarginRanker": (MarginRanker(), documents, metric, {"fit_margin"}),
        "MetricRanker": (MetricRanker(), tags, metric, {"fit_metric"}),
        "MatchingRanker": (MatchingRanker(), documents, matching, {"averaged_fit"}),
        "GraphMatcher": (GraphMatcher(), graphs, matching, {"minimize"}),
        "CStarRanker": (CStarRanker(), tags, cstar, {"cross_fit"}),
        "CStarMarginRanker": (CStarMarginRanker(C=1.0), tags, cstar, {"bcfw"}),
        "LatentRanker": (latent, (pairs.queries, pairs.items), SHARED, {"epoch"}),
        "LatentFeatureRanker": (LatentFeatureRanker(4, epochs=1), rows, SHARED, {"epoch"}),
        "SessionRanker": (next_items, (sessions,), SHARED, {"epoch"}),
        "SessionNeighbors": (SessionNeighbors(), (sessions,), SHARED, {"hold_out"}),
    }
    ranks = {
        "CStarRanker": (CStarRanker(core=2, C=0.3), tags, (scenes.X[:3],), cstar),
        "MetricRanker": (MetricRanker(), tags, (scenes.X[:3], 3), metric),
        "MarginRanker": (MarginRanker(), documents, (queries.X, queries.qid), metric),
        "LatentRanker": (latent, (pairs.queries, pairs.items), ([1, 2, 3], 5), SHARED),
        "SessionRanker": (next_items, (sessions,), (sessions[:3], 5), SHARED),
        "SessionNeighbors": (SessionNeighbors(), (sessions,), (sessions[:3], 5), SHARED),
    }
    found = {
        f"{name}.fit": (partial(estimator.fit, *data), packages, stop_at)
        for name, (estimator, data, packages, stop_at) in fits.items()
    }
    for name, (estimator, data, asked, packages) in ranks.items():
        found[f"{name}.rank"] = (partial(_fitted(estimator, data), asked), packages, set[str]())
    return found


def _fitted(estimator: Any, data: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """Return a call of ``rank``; fit, and a first call, which loads modules, are not traced."""
    fitted: list[Any] = []

    def rank(asked: tuple[Any, ...]) -> Any:
        return fitted[0].rank(*asked)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.append(estimator.fit(*data))
    return rank


def main(names: list[str]) -> int:
    """Print a line per call, and with ``--functions`` what was entered; return how many are over the limits."""
    if "--help" in names:
        print(__doc__)
        return 0
    every, over = subjects(), 0
    wanted = [name for name in names if not name.startswith("-")]
    for name, (call, packages, stop_at) in every.items():
        if wanted and name not in wanted:
            continue
        found = walk(call, packages, stop_at)
        figures, limits = found.figures(), LIMITS[name.rpartition(".")[2]]
        is_over = any(figure > limit for figure, limit in zip(figures, limits, strict=True))
        over += is_over
        print(
            f"{name:28s} functions {figures[0]:3d}  files {figures[1]:2d}  returns {figures[2]:2d}"
            f"{'  over' if is_over else ''}   until {found.reached or 'the end'}"
        )
        if "--functions" in names:
            print("\n".join(f"    {one}" for one in found.seen.values()))
    return over


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
