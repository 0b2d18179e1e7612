"""The engine of one GPU: steps against the whole catalogue, in float16 with sums in float32, all violators counted.

It does what ``blocked`` does, but for two things: scores are of tables rounded to float16 (the tables themselves stay
float32), and a pair's gradient is the mean over all of its violators, not over a sample. The same seed gives the same
bits on the same GPU and versions of torch and Triton; they are not those of ``blocked``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from slatewise.core.arrays import Singles
from slatewise.factors.averaging import EpochMean
from slatewise.factors.blocked import step_size
from slatewise.factors.device import TorchDevice, gpu_to_train_on
from slatewise.factors.engine import EngineKind, EngineTask, EpochStats, Factors
from slatewise.factors.pairs import TrainingPairs
from slatewise.factors.rank_weights import rank_weights
from slatewise.factors.settings import Gpu, TrainingSettings

if TYPE_CHECKING:
    from slatewise.factors.gpu.epoch import Setting


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
        """Visit every pair once, a step at a time."""
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
