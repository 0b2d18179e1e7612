"""What a model sees of the items of a project: features, or log-odds of the labels from elsewhere.

They lie beside the project, ``beach.features.npz`` or ``beach.log-odds.npz`` of ``beach.db``, as an archive that
:func:`slatewise.data.read_npz` reads, one row per item with its id; the project's settings say which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slatewise.core.checks import Features, feature_rows, require_in_range
from slatewise.core.errors import ProjectError
from slatewise.core.rules import short_repr
from slatewise.data import read_npz, write_npz
from slatewise.data.records import MultiLabel
from slatewise.labeling.store.project import Project

if TYPE_CHECKING:
    from slatewise.core.checks import Sparse

DataKind: TypeAlias = Literal["features", "log-odds"]
_KINDS = get_args(DataKind)
Seen: TypeAlias = Literal["features", "log-odds", "nothing"]
_SETTING = "item data"
_APART = 1e-6


@dataclass(frozen=True, eq=False)
class ItemData:
    """One row per item, in the order of the items."""

    X: Features
    """Features; or log-odds with a column per label, in the order of the labels, never sparse."""
    kind: Seen
    """What the rows are; nothing: log-odds of about 0 for whatever item and label."""

    @classmethod
    def of(
        cls,
        project: Project,
        X: ArrayLike | Sparse,
        kind: DataKind = "features",
        ids: Sequence[str] | NDArray[np.str_] | None = None,
        label_names: Sequence[str] | NDArray[np.str_] | None = None,
    ) -> ItemData:
        """Check rows, and put them into the order of the items, and log-odds into that of the labels.

        Parameters
        ----------
        project
            The project.
        X
            Rows, dense or sparse.
        kind : {"features", "log-odds"}
            What they are.
        ids
            Of which items; rows of others are left out. Default: a row per item, in their order.
        label_names
            Of the columns of log-odds. Default: a column per label, in their order.
        """
        if kind not in _KINDS:
            raise ValueError(f"kind: expected one of {_KINDS}, found {short_repr(kind)}")
        rows = feature_rows("X", X)
        items = [item.id for item in project.items.all()]
        if ids is not None:
            rows = rows[_places("items", ids, items, rows.shape[0])]
        elif rows.shape[0] != len(items):
            raise ValueError(f"X: expected a row per item, {len(items)}, found {rows.shape[0]}")
        if kind == "features":
            return cls(rows, kind)
        scores = np.asarray(rows.toarray() if not isinstance(rows, np.ndarray) else rows, dtype=np.float64)
        names = project.labels.names()
        if label_names is not None:
            scores = scores[:, _places("labels", label_names, names, scores.shape[1])]
        elif scores.shape[1] != len(names):
            raise ValueError(f"X: expected a column per label, {len(names)}, found {scores.shape[1]}")
        require_in_range("X", scores)
        return cls(np.ascontiguousarray(scores), kind)

    @staticmethod
    def kind_attached(project: Project) -> Seen:
        """Return what lies beside a project; it is not read."""
        kept: object = project.settings.get(_SETTING)
        given = cast("dict[str, object]", kept) if isinstance(kept, dict) else {}
        return cast("Seen", given.get("kind", "nothing"))

    @classmethod
    def attached(cls, project: Project) -> ItemData | None:
        """Read what lies beside a project, None if nothing does."""
        kept: object = project.settings.get(_SETTING)
        if kept is None:
            return None
        given = cast("dict[str, object]", kept) if isinstance(kept, dict) else {}
        name, kind = given.get("file"), cast("DataKind", given.get("kind"))
        if not isinstance(name, str) or Path(name).name != name or kind not in _KINDS:
            raise ProjectError(f"{project.path}: expected the name of a file beside it, found {short_repr(given)}")
        read = read_npz(project.path.with_name(name), require_labels=False)
        names = read.label_names if kind == "log-odds" else None
        try:
            return cls.of(project, read.X, kind, cast("NDArray[np.str_] | None", read.ids), names)
        except ValueError as error:
            raise ProjectError(f"{project.path.with_name(name)}: {error}: attach all of them again") from None

    @classmethod
    def seen(cls, project: Project) -> ItemData:
        """Return what a model sees of the items: what lies beside the project, else nothing that tells them apart.

        Of such items a model learns how frequent labels are and which come together: enough to infer some from others.
        """
        attached = cls.attached(project)
        if attached is not None:
            return attached
        # Equal rows count as one that is heavier: by next to nothing they stay rows of their own, to cross-validate on.
        apart = np.linspace(-_APART, _APART, len(project.items))[:, None]
        return cls(np.broadcast_to(apart, (len(apart), len(project.labels))), "nothing")

    def attach(self, project: Project) -> Path:
        """Write it beside the project, in place of what was there, so that all sessions and retraining find it."""
        from scipy.sparse import csr_array

        path = project.path.with_name(f"{project.path.stem}.{self.kind}.npz")
        names = project.labels.names() if self.kind == "log-odds" else []
        ids = np.array([item.id for item in project.items.all()], dtype=np.str_)
        nothing = csr_array(np.zeros((self.X.shape[0], len(names)), dtype=np.int8))
        write_npz(path, MultiLabel(cast("csr_array", self.X), nothing, np.array(names, dtype=np.str_), ids=ids))
        project.settings.set(_SETTING, {"file": path.name, "kind": self.kind})
        return path


def _places(what: str, given: Sequence[Any] | NDArray[Any], wanted: list[str], n: int) -> NDArray[np.int64]:
    """Return where each of those wanted is among those given."""
    names = [str(one) for one in given]
    if len(names) != n or len(set(names)) < n:
        raise ValueError(f"{what}: expected {n} names, each once, found {len(set(names))}")
    places = {name: place for place, name in enumerate(names)}
    lost = [name for name in wanted if name not in places]
    if lost:
        raise ValueError(
            f"X: expected all {what}, found nothing for {len(lost)} of them, such as {short_repr(lost[0])}"
        )
    return np.array([places[name] for name in wanted], dtype=np.int64)
