import pytest

from slatewise.core.declarations import Settings, learned, learned_of, param, params_of, settings
from slatewise.core.rules import NONE, POSITIVE, count, learned_array, one_of, vector
from slatewise.estimators.base import Estimator


class Rbf(Settings, shorthand="rbf"):
    """A kernel."""

    gamma: float | None = param(POSITIVE | NONE, "Width.", default=None)


class Stages(Settings, takes_number=True):
    """Stages."""

    n: int = param(count(), "How many.", default=1)
    weights: tuple[float, ...] = param(vector("numbers"), "One per position.", default=(1.0,))


class Toy(Estimator):
    """An estimator.

    Examples
    --------
    >>> 1 + 1
    2
    """

    kernel: str | Rbf = param(one_of("linear") | settings(Rbf), "The kernel.", default="linear", kw_only=False)
    stages: int | Stages = param(settings(Stages), "The stages.", default=1)
    n_jobs: int | None = param(NONE, "Threads.", default=None, saved=False)
    coef_: object = learned(learned_array(1), "Weights.", shape=("n_features_in_",))
    basis_: object = learned(learned_array(2), "Rows.", shape=("rows", "n_features_in_"), optional=True)
    rows_: object = learned(learned_array(1), "One per row of basis_.", shape=("rows",), optional=True)


def test_the_signature_and_the_docstring_follow_from_the_declarations():
    assert list(params_of(Toy)) == ["kernel", "stages", "n_jobs"]
    assert list(learned_of(Toy)) == ["coef_", "basis_", "rows_"]
    sections = [line for line in Toy.__doc__.splitlines() if line in ("Parameters", "Attributes", "Examples")]
    assert sections == ["Parameters", "Attributes", "Examples"]
    assert "kernel : 'linear' or 'rbf' or Rbf(...), default='linear'\n    The kernel." in Toy.__doc__
    with pytest.raises(TypeError):
        Toy("linear", 2)


def test_settings_are_frozen_compared_by_value_and_checked():
    assert Stages(2, weights=[1, 2]) == Stages(2, weights=(1, 2))
    assert hash(Stages(2)) == hash(Stages(2))
    with pytest.raises(AttributeError):
        Rbf().gamma = 2.0
    with pytest.raises(ValueError, match=r"Stages\.n: expected a whole number from 1"):
        Stages(0)


def test_parameters_reach_into_settings_and_their_shorthands():
    toy = Toy(kernel="rbf", stages=2)
    assert toy.get_params() == {
        "kernel": "rbf",
        "stages": 2,
        "n_jobs": None,
        "kernel__gamma": None,
        "stages__n": 2,
        "stages__weights": (1.0,),
    }
    assert toy.set_params(stages__n=3, kernel__gamma=0.5) is toy
    assert (toy.kernel, toy.stages) == (Rbf(0.5), Stages(3))
    assert toy.set_params(kernel__gamma=2.0, kernel="rbf").kernel == Rbf(2.0)  # the whole first, then its field


def test_what_a_setting_does_not_have_is_an_error_that_names_who_has_it():
    with pytest.raises(ValueError, match="kernel__gamma: expected a parameter of kernel='rbf', found kernel='linear'"):
        Toy().set_params(kernel__gamma=1.0)
    with pytest.raises(ValueError, match="kernel__width: expected a parameter that exists, found kernel='rbf'"):
        Toy(kernel="rbf").set_params(kernel__width=1.0)
    with pytest.raises(ValueError, match="size: expected one of kernel, stages, n_jobs as a parameter of Toy"):
        Toy().set_params(size=1)


def test_shapes_are_compared_with_attributes_and_with_each_other():
    import numpy as np

    toy = Toy()
    toy.n_features_in_, toy.coef_ = 3, np.zeros(3)
    toy._check_learned()
    toy.basis_, toy.rows_ = np.zeros((2, 3)), np.zeros(2)
    toy._check_learned()
    toy.rows_ = np.zeros(4)
    with pytest.raises(ValueError, match=r"rows_: expected shape \(2,\), found \(4,\)"):
        toy._check_learned()
    del toy.rows_
    toy.coef_ = np.zeros(2)
    with pytest.raises(ValueError, match=r"coef_: expected shape \(3,\), found \(2,\)"):
        toy._check_learned()
