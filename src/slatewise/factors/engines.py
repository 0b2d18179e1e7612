"""The engine of each settings object: a new one is a file with its class and how it is made, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from slatewise.core.declarations import Settings
from slatewise.factors import blocked, gpu_engine, sampled
from slatewise.factors.engine import EngineKind
from slatewise.factors.settings import Blocked, Gpu, Sampled

ENGINES: Mapping[type[Settings], EngineKind] = {
    Blocked: blocked.KIND,
    Sampled: sampled.KIND,
    Gpu: gpu_engine.KIND,
}
