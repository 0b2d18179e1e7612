"""scikit-learn's mix-ins for estimators that transform, with types."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slatewise.core.checks import require_in_range, sparse_rows
from slatewise.estimators.sklearn import BaseEstimator

if TYPE_CHECKING:

    class Transforms:
        """Gives ``fit_transform``, ``set_output`` and ``get_feature_names_out`` to a class with ``transform``."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[Any]: ...  # noqa: D102
        def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]: ...  # noqa: D102
        def __sklearn_tags__(self) -> Any: ...
else:
    from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

    class Transforms(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
        """Gives ``fit_transform``, ``set_output`` and ``get_feature_names_out`` to a class with ``transform``."""


_validation: Any = import_module("sklearn.utils.validation")
_multiclass: Any = import_module("sklearn.utils.multiclass")


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


def check_classes(y: Any, n_rows: int) -> NDArray[Any]:
    """Return y as a checked vector with one class per row."""
    values: NDArray[Any] = _validation.column_or_1d(y, warn=True)
    if len(values) != n_rows:
        raise ValueError(
            f"y: expected one class per row, {n_rows}, found {len(values)}: inconsistent numbers of samples"
        )
    _validation.assert_all_finite(values, input_name="y")
    _multiclass.check_classification_targets(values)
    return values
