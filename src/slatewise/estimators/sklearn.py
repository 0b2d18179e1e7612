"""The one gateway to scikit-learn, which has no types: everything that comes through here has."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from slatewise.core.checks import Features, feature_rows, real_numbers, require_in_range, sparse_rows

if TYPE_CHECKING:
    from slatewise.core.checks import Sparse

    class BaseEstimator:
        """What slatewise uses of scikit-learn's base class."""

        n_features_in_: int

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...  # noqa: D102
        def set_params(self, **params: Any) -> BaseEstimator: ...  # noqa: D102
        def __sklearn_tags__(self) -> Any: ...

    class Transforms:
        """Gives ``fit_transform``, ``set_output`` and ``get_feature_names_out`` to a class with ``transform``."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[Any]: ...  # noqa: D102
        def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]: ...  # noqa: D102
        def __sklearn_tags__(self) -> Any: ...
else:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

    class Transforms(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
        """Gives ``fit_transform``, ``set_output`` and ``get_feature_names_out`` to a class with ``transform``."""


__all__ = [
    "BaseEstimator",
    "Transforms",
    "available_if",
    "check_classes",
    "check_features",
    "check_is_fitted",
    "check_points",
    "check_rows",
    "check_targets",
    "check_weights",
    "say_multi_label",
]

Method = TypeVar("Method")
_validation: Any = import_module("sklearn.utils.validation")


def available_if(says: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Decorate a method that an estimator has only where its parameters allow it: ``says`` returns True, or raises."""
    metaestimators: Any = import_module("sklearn.utils.metaestimators")
    return cast("Callable[[Method], Method]", metaestimators.available_if(says))


def check_rows(estimator: BaseEstimator, X: ArrayLike, *, reset: bool) -> NDArray[Any]:
    """Return X as a checked numeric array (rows, features); ``reset`` remembers the features, otherwise compares."""
    sparse_rows("X", X)  # scikit-learn refuses sparse rows, but may quote them, and trusts them then
    return cast("NDArray[Any]", _validation.validate_data(estimator, X, reset=reset, dtype="numeric"))


def check_features(estimator: BaseEstimator, X: ArrayLike | Sparse, *, reset: bool) -> Features:
    """Return X, of bounded size, as :func:`check_rows` does, or as CSR where it is sparse in any of SciPy's formats."""
    if not issparse(X):
        dense = check_rows(estimator, cast("ArrayLike", X), reset=reset)
        require_in_range("X", dense)
        return dense
    rows = feature_rows("X", X)  # checks the format, which scikit-learn takes for granted
    checked: Any = _validation.validate_data(estimator, rows, reset=reset, accept_sparse="csr", dtype="numeric")
    require_in_range("X", checked.data)
    return cast("Features", csr_array(checked))


def check_points(estimator: BaseEstimator, X: Any, *, reset: bool, sparse: bool = True, name: str = "X") -> Any:
    """Return X as checked float64 or float32 rows, dense or CSR; ``reset`` remembers the features."""
    given = sparse_rows(name, X) if sparse else None  # scikit-learn trusts what it converts to CSR
    rows: Any = _validation.validate_data(
        estimator,
        X if given is None else given,
        reset=reset,
        dtype=[np.float64, np.float32],
        accept_sparse="csr" if sparse else False,
    )
    require_in_range(name, rows if given is None else rows.data)
    return rows


def check_targets(X: Features, y: ArrayLike | None) -> NDArray[np.float64]:
    """Return y as a checked vector with one finite relevance per row of X."""
    if y is None:
        raise ValueError("y: expected one relevance per row, found None; this ranker requires y to be passed")
    values = cast("NDArray[Any]", _validation.column_or_1d(y, warn=True))
    _validation.check_consistent_length(X, values)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"y: expected numeric relevance, found dtype {values.dtype}: Unknown label type")
    relevance = values.astype(np.float64)
    if not np.isfinite(relevance).all():
        row = int(np.flatnonzero(~np.isfinite(relevance))[0])
        raise ValueError(f"y: expected finite relevance, found {relevance[row]} (NaN or infinity) in row {row}")
    return relevance


def check_classes(y: Any, n_rows: int) -> NDArray[Any]:
    """Return y as a checked vector with one class per row."""
    values: NDArray[Any] = _validation.column_or_1d(y, warn=True)
    if len(values) != n_rows:
        raise ValueError(
            f"y: expected one class per row, {n_rows}, found {len(values)}: inconsistent numbers of samples"
        )
    _validation.assert_all_finite(values, input_name="y")
    multiclass: Any = import_module("sklearn.utils.multiclass")
    multiclass.check_classification_targets(values)
    return values


def say_multi_label(tags: Any) -> Any:
    """Set the scikit-learn tags of an estimator that requires y and accepts several labels per row."""
    tags.target_tags.required = True
    tags.target_tags.two_d_labels = True
    tags.target_tags.multi_output = True
    tags.classifier_tags = import_module("sklearn.utils").ClassifierTags(multi_label=True)
    return tags


def check_is_fitted(estimator: BaseEstimator) -> None:
    """Raise scikit-learn's NotFittedError before fit."""
    _validation.check_is_fitted(estimator)


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Return one finite weight >= 0 a row; ones by default."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = real_numbers("sample_weight", sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight: expected one weight per row, shape ({n_rows},), found {weight.shape}")
    if not np.isfinite(weight).all() or (weight < 0).any():
        row = int(np.flatnonzero(~np.isfinite(weight) | (weight < 0))[0])
        raise ValueError(f"sample_weight: expected finite numbers >= 0, found {weight[row]} in row {row}")
    return weight
