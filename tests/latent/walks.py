"""The longest chains of calls from ``fit`` and ``rank`` of a LatentRanker down to a kernel.

    NUMBA_DISABLE_JIT=1 python -m tests.latent.walks

Kernels are plain Python here (``NUMBA_DISABLE_JIT=1``) and there is one thread, so that every call is on one stack.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

PACKAGE = str(Path(__file__).parents[2] / "src" / "slatewise") + os.sep
KERNELS = f"{os.sep}kernels{os.sep}"
GIVEN = {"learning_rate": 0.3, "max_norm": 1.5}
SMALL: dict[str, dict[str, Any]] = {
    "fit, as it comes": {},
    "fit, bilinear, own": GIVEN | {"pair": "bilinear", "own_weight": 1.0, "stage_norm": "auto"},
    "fit, drawn": GIVEN | {"negatives": 5},
    "fit, sampled": GIVEN | {"engine": "sampled"},
    "fit, features": GIVEN | {"features": True},
    "fit, sessions": GIVEN | {"window": 3, "dropout": 0.5},
}
"""Parameters of fits."""
CUT: dict[str, dict[str, int]] = {
    "rank": {},
    "rank, blocks of queries": {"cascade.QUERIES_PER_BLOCK": 4},
    "rank, shares of the catalogue": {"cascade.ITEMS_PER_SHARE": 6},
    "rank, quantized index": {"model.FEWEST_INDEXED": 1, "cascade.FEW_QUERIES": 100},
}
"""Sizes beyond which a ranking is cut, so small that little data go every way."""


def walk(call: Callable[[], object]) -> list[CodeType]:
    """Return the longest chain of functions of the package, outside kernels, that ends in one."""
    longest: list[CodeType] = []

    def look(frame: FrameType, event: str, argument: object) -> None:
        nonlocal longest
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(PACKAGE) or KERNELS not in name or frame.f_code.co_name == "<module>":
            return
        chain, caller = [], frame.f_back
        while caller is not None:
            if caller.f_code.co_filename.startswith(PACKAGE):
                chain.append(caller.f_code)
            caller = caller.f_back
        if not any(KERNELS in code.co_filename for code in chain) and len(chain) > len(longest):
            longest = chain[::-1]

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return longest


def walks() -> dict[str, list[tuple[str, int]]]:
    """Return the chains, each function with its number of lines."""
    import numpy as np

    from slatewise import LatentRanker, SessionNeighbors, datasets

    sessions = datasets.make_sessions(14, 12, n_clusters=3, random_state=0).sessions
    pairs = sessions.pairs()
    found: dict[str, list[CodeType]] = {}
    for name, settings in SMALL.items():
        features = settings.get("features", False)
        given = (np.eye(12)[pairs.queries] if features else pairs.queries, pairs.items)
        if "window" in settings:
            given = (sessions,)
        settings = {key: value for key, value in settings.items() if key != "features"}
        ranker = LatentRanker(2, stages=2, k=4, epochs=2, validation_fraction=0.2, n_jobs=1, **settings)
        found[name] = walk(lambda ranker=ranker, given=given: ranker.fit(*given))
    small: dict[str, Any] = {"epochs": 1, "n_jobs": 1, "validation_fraction": 0.0, "window": 3}
    by_session = LatentRanker(2, base=None, **small).fit(sessions)
    on_base = LatentRanker(2, base=SessionNeighbors(), **small).fit(sessions)
    found["rank, the first on a base"] = walk(lambda: on_base.rank(sessions, k=3, exclude_seen=True))
    on_blend = LatentRanker(2, **small).fit(sessions)
    found["rank, the first on a blend"] = walk(lambda: on_blend.rank(sessions, k=3, exclude_seen=True))
    ranker = LatentRanker(2, stages=2, k=4, epochs=1, n_jobs=1, validation_fraction=0.0)
    ranker.fit(pairs.queries, pairs.items)
    hidden = [[item] for item in ranker.item_ids_[: len(ranker.query_ids_)]]
    asked = ranker.query_ids_[: len(hidden)]
    for name, sizes in CUT.items():
        with ExitStack() as cut:
            for where, size in sizes.items():
                cut.enter_context(patch(f"slatewise.latent.{where}", size))
            found[name] = walk(lambda: ranker.rank(asked, k=3, exclude=hidden))
            found[f"{name}, sessions"] = walk(lambda: by_session.rank(sessions, k=3, exclude_seen=True))
            found[f"{name}, on a base"] = walk(lambda: on_base.rank(sessions, k=3, exclude_seen=True))
            found[f"{name}, on a blend"] = walk(lambda: on_blend.rank(sessions, k=3, exclude_seen=True))
    return {
        name: [(_named(code), len(inspect.getsourcelines(code)[0])) for code in codes] for name, codes in found.items()
    }


def _named(code: CodeType) -> str:
    return f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_qualname}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(walks()))
    else:
        for name, chain in walks().items():
            print(f"{name}: {len(chain)}")
            for function, lines in chain:
                print(f"    {function} ({lines} lines)")
