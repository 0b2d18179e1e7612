"""The state of a LatentRanker's fit on disk, after each epoch: written whole or not at all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from slatewise._version import __version__
from slatewise.model_file import Json, ModelCard, ModelState, read_model, write_model
from slatewise.warp.stages import Shape
from slatewise.warp.tables import Table
from slatewise.warp.training import StageState

_KIND = "latent checkpoint"


@dataclass(frozen=True, eq=False)
class LatentCheckpoint:
    """A file that a fit continues from; without a path it does nothing."""

    path: Path | None
    belongs_to: str

    @classmethod
    def of(cls, path: str | os.PathLike[str] | None, belongs_to: str) -> LatentCheckpoint:
        """Name the file and what it may only ever be continued with."""
        return cls(None if path is None else Path(path), belongs_to)

    def write(self, done: tuple[StageState, ...], state: StageState) -> None:
        """Replace the file by the finished stages and the one under way."""
        if self.path is None:
            return
        arrays: dict[str, NDArray[Any]] = {}
        values: dict[str, Json] = {"stages": len(done) + 1}
        for each in (*done, state):
            values[f"{each.stage}.epoch"] = each.epoch
            values[f"{each.stage}.best_epoch"] = each.best_epoch
            arrays[f"{each.stage}.best_recall"] = np.array([each.best_recall])
            for name, pair in (("now", (each.queries, each.items)), ("best", each.best)):
                for side, table in zip(("queries", "items"), pair or (), strict=False):
                    arrays[f"{each.stage}.{name}.{side}"] = table.values
                    arrays[f"{each.stage}.{name}.{side}.steps"] = table.accumulators
        card = ModelCard(f"slatewise {__version__}", 0, 0, self.belongs_to)
        write_model(self.path, ModelState(_KIND, {}, values, arrays, card))

    def read(self, shape: Shape) -> tuple[tuple[StageState, ...], StageState | None]:
        """Return the finished stages and the one under way; none and None where there is no file."""
        if self.path is None or not self.path.exists():
            return (), None
        saved = read_model(self.path)
        if saved.estimator != _KIND or saved.card.data_sha256 != self.belongs_to:
            raise ValueError(
                f"checkpoint: expected the state of this data and these settings, found another one in {self.path}; "
                "remove the file or name another"
            )
        *done, going = (_stage(saved, shape, stage) for stage in range(cast("int", saved.values["stages"])))
        return tuple(done), going

    def remove(self) -> None:
        """Forget the state: the fit is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _stage(saved: ModelState, shape: Shape, stage: int) -> StageState:
    def tables(name: str) -> tuple[Table, Table]:
        made = shape.tables(stage)
        for side, table in zip(("queries", "items"), made, strict=True):
            table.values[:] = saved.arrays[f"{stage}.{name}.{side}"]
            table.accumulators[:] = saved.arrays[f"{stage}.{name}.{side}.steps"]
        return made

    return StageState(
        stage,
        *tables("now"),
        cast("int", saved.values[f"{stage}.epoch"]),
        cast("int", saved.values[f"{stage}.best_epoch"]),
        float(saved.arrays[f"{stage}.best_recall"][0]),
        tables("best") if f"{stage}.best.items" in saved.arrays else None,
    )
