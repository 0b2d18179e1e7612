"""A GPU to train or rank on: found before work starts, or refused by a clear error. torch is imported late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slatewise.core.arrays import Ints
from slatewise.core.running.devices import require_gpu

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.factors.cascade import Cascade, TopItems


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
