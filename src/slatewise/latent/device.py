"""A GPU to train or rank on: found before work starts, or refused by a clear error. torch is imported late."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from slatewise.latent.tables import Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from slatewise.latent.cascade import Cascade, TopItems


@dataclass(frozen=True)
class TorchDevice:
    """A device by torch's name for it."""

    name: str

    def top(self, cascade: Cascade, numbers: Ints, k: int, exclude: csr_array | None) -> TopItems:
        """Rank the catalogue there."""
        from slatewise.latent.gpu.topk import top

        return top(self.name, cascade, numbers, k, exclude)


def gpu(name: str = "cuda", argument: str = "device") -> TorchDevice:
    """Return a GPU; ImportError where torch or Triton is not installed, ValueError where there is no such GPU."""
    for module in ("torch", "triton"):
        if find_spec(module) is None:
            raise ImportError(f"a GPU needs {module}: pip install 'slatewise[gpu]'")
    torch: Any = import_module("torch")
    if not torch.cuda.is_available():
        raise ValueError(f"{argument}: expected a GPU that torch {torch.__version__} can use, found none")
    number = name.partition(":")[2]
    if number and int(number) >= torch.cuda.device_count():
        raise ValueError(f"{argument}: expected one of {torch.cuda.device_count()} GPUs, found {name!r}")
    return TorchDevice(name)


def check_device(name: str | None) -> TorchDevice | None:
    """Return the device that a user names: None, the CPU, or "cuda", or "cuda:1" and so on."""
    if name is None:
        return None
    kind, _, number = name.partition(":") if isinstance(name, str) else ("", "", "")  # pyright: ignore[reportUnnecessaryIsInstance]
    if kind != "cuda" or (":" in name and not number.isdecimal()):
        raise ValueError(f"device: expected None, 'cuda' or 'cuda:0' and so on, found {name!r}")
    return gpu(name)
