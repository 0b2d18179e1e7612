"""The engine of one GPU: steps against the whole catalog, in float16 with sums in float32, all violators counted.

It works as ``blocked`` except for two things: scores are of tables rounded to float16 (the tables themselves stay
float32), and a pair's gradient is the mean over all of its violators, not over a sample. The same seed gives the same
bits on the same GPU and versions of torch and Triton; they are not those of ``blocked``.

A GPU is looked for before work starts, and a clear error says where there is none. torch is imported late.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from slatewise.core.arrays import Ints, Singles
from slatewise.core.running.devices import require_gpu
from slatewise.factors.engines.blocked import rank_weights, step_size
from slatewise.factors.engines.protocol import EngineKind, EngineTask, EpochStats
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.scoring import Factors
from slatewise.factors.settings import Gpu, TrainingSettings
from slatewise.factors.tables import EpochMean

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.factors.gpu.epoch import Setting
    from slatewise.factors.scoring import Cascade, TopItems


@dataclass(frozen=True)
class TorchDevice:
    """A device by torch's name for it."""

    name: str

    def top(self, cascade: Cascade, numbers: Ints, k: int, exclude: csr_array | None) -> TopItems:
        """Rank the catalogue there."""
        from slatewise.factors.gpu.topk import top

        return top(self.name, cascade, numbers, k, exclude)


def gpu(name: str = "cuda") -> TorchDevice:
    """Return a GPU; ImportError where torch or Triton is not installed, ValueError where there is no such GPU."""
    return TorchDevice(str(require_gpu(name)))


def gpu_to_train_on(name: str = "cuda") -> TorchDevice:
    """Return a GPU for an engine."""
    return TorchDevice(str(require_gpu(name, "engine", "'blocked' trains on the CPU")))


def check_device(name: str | None) -> TorchDevice | None:
    """Return the device that a user names: None or "cpu", the CPU, or "cuda", or "cuda:1" and so on."""
    return None if name is None or name == "cpu" else gpu(name)


@dataclass(eq=False)
class GpuEngine:
    """Steps of ``step_pairs`` pairs on a device."""

    rank_weight: Singles
    step_pairs: int
    dropout: float = 0.0
    device: TorchDevice = field(default_factory=gpu_to_train_on)

    @cached_property
    def setting(self) -> Setting:
        """What every epoch needs; pairs stay on the device between epochs."""
        from slatewise.factors.gpu.epoch import Setting

        return Setting(self.device.name, self.rank_weight, self.step_pairs, self.dropout)

    def epoch(
        self, factors: Factors, pairs: TrainingPairs, rng: np.random.Generator, mean: EpochMean | None = None
    ) -> EpochStats:
        """Train on every pair once, a step at a time."""
        from slatewise.factors.gpu.epoch import run_epoch

        if factors.base is not None:
            raise NotImplementedError("engine: expected 'blocked' where a base scores first, found 'gpu'")
        return run_epoch(self.setting, factors, pairs, rng, mean)


def gpu_engine(task: EngineTask) -> GpuEngine:
    """Compare with all items."""
    settings, engine = task.settings, cast("Gpu", task.settings.engine)
    weight = rank_weights(task.n_items, settings.rank_power)
    dropout = 0.0 if task.stage else settings.dropout  # as in blocked: later stages leave U and V as they are
    return GpuEngine(weight, engine.batch_size or step_size(task.n_pairs), dropout, find_gpu(settings))


def find_gpu(settings: TrainingSettings) -> TorchDevice:
    """Return the GPU that fit trains, hands over and watches recall on."""
    return gpu_to_train_on(cast("Gpu", settings.engine).device)


KIND = EngineKind(gpu_engine, device=find_gpu)
