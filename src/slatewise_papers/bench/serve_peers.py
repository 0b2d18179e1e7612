"""Servers of others with the same factors: ``python -m slatewise_papers.bench.serve_peers NAME MODEL PORT``."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from slatewise import load

K = 20


def implicit_route(path: str, port: int) -> None:
    """Run implicit's ``recommend`` in a plain FastAPI route: what one would write first."""
    fastapi, uvicorn = import_module("fastapi"), import_module("uvicorn")
    ranker = load(path)
    width = ranker.n_components_ + 1
    model: Any = import_module("implicit.cpu.als").AlternatingLeastSquares(factors=width)
    model.item_factors = np.ascontiguousarray(ranker.item_factors_[0, :, :width])
    model.user_factors = np.ascontiguousarray(ranker.query_factors_[0, :, :width])
    app = fastapi.FastAPI()

    def predict(body: dict[str, Any]) -> dict[str, Any]:
        ids, scores = model.recommend(body["queries"], None, body["k"], filter_already_liked_items=False)
        return {"ids": ids.tolist(), "scores": scores.tolist()}

    def health() -> dict[str, str]:
        return {"status": "alive"}

    app.post("/predict")(predict)
    app.get("/health")(health)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


def litserve(path: str, port: int) -> None:
    """Run our ranker inside LitServe, with its batching."""
    import_module("slatewise_papers.bench.serve_litserve").run(path, port)


if __name__ == "__main__":
    {"implicit": implicit_route, "litserve": litserve}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
