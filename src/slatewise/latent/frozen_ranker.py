"""An estimator whose answers come from a model that is made once, of what fit learned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar, cast

from slatewise.estimators.base import SavedEstimator
from slatewise.estimators.sklearn import check_is_fitted

Model = TypeVar("Model")


class FrozenRanker(SavedEstimator, ABC, Generic[Model]):
    """A frozen model, made of learned attributes."""

    _frozen_from: ClassVar[tuple[str, ...]]
    """The learned attributes that the model is made of."""
    _frozen: tuple[tuple[Any, ...], Model] | None = None
    """What the model was made of, and the model; neither copied nor saved."""

    @abstractmethod
    def _freeze(self) -> Model:
        """Return what was learnt."""

    def _model(self) -> Model:
        """Return what was learnt, frozen; made again where an attribute was set since."""
        check_is_fitted(self)
        source = tuple(getattr(self, name) for name in self._frozen_from)
        if self._frozen is None or any(one is not other for one, other in zip(self._frozen[0], source, strict=True)):
            self._frozen = source, self._freeze()
        return self._frozen[1]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made of the rest."""
        return {name: value for name, value in cast("Any", super()).__getstate__().items() if name != "_frozen"}
