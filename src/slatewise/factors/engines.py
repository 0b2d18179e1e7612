"""The engines by name: a new one is a file with its class and how it is made, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from slatewise.factors import blocked, gpu_engine, sampled
from slatewise.factors.engine import EngineKind

ENGINES: Mapping[str, EngineKind] = {
    "blocked": blocked.KIND,
    "sampled": sampled.KIND,
    "gpu": gpu_engine.KIND,
}
