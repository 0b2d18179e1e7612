"""One epoch of WARP over the pairs: blocked and exact, sampled, or on a GPU.

protocol    what an engine is given and what it returns
blocked     weights of ranks, negatives, and steps of blocks: the update itself
sampled     one pair at a time, threads without locks
gpu         on a device, by the kernels in factors/gpu

A new engine is a file with its class and how it is made, and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping

from slatewise.core.declarations import Settings
from slatewise.factors.engines import blocked, gpu, sampled
from slatewise.factors.engines.protocol import EngineKind
from slatewise.factors.settings import Blocked, Gpu, Sampled

ENGINES: Mapping[type[Settings], EngineKind] = {
    Blocked: blocked.KIND,
    Sampled: sampled.KIND,
    Gpu: gpu.KIND,
}
