"""Model files with right checksums and hostile content: refused by a named rule, or harmless."""

import copy

import numpy as np
import pytest
from tests.fuzz.models.alter import put_together, taken_apart
from tests.fuzz.models.asked import Base, public_methods, questions
from tests.fuzz.models.engine import answers, batch, files, judge, known_answers
from tests.fuzz.models.fitted import fitted

from slatewise import StructuredReranker, load
from slatewise.core.errors import ModelFileError
from slatewise.factors import Stages

CASES = 11


def with_value(name, part, key, value):
    parts = taken_apart(files()[name])
    parts.metadata[part][key] = value
    return put_together(parts)


def loaded(data, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    return load(path)


def test_no_altered_file_does_harm(monkeypatch):
    monkeypatch.setenv("SLATEWISE_THREADS", "1")
    assert len(files()) * CASES >= 300
    failures = [failure for name in files() for failure in batch(name, 1, 0, CASES)[1]]
    assert not failures, "\n".join(failures)


def test_unaltered_files_answer_as_before(tmp_path):
    for name, data in files().items():
        assert put_together(taken_apart(data)) == data, name
        assert judge(data, tmp_path).failure is None, name
    for name, known in known_answers().items():
        assert answers(loaded(files()[name], tmp_path), tmp_path) == known, name


def test_every_public_method_is_asked(tmp_path):
    for name, estimator in fitted().items():
        asked = {question.method for question in questions(copy.deepcopy(estimator), tmp_path)}
        without_factors = getattr(estimator, "parts_", None) == ["base"]
        of_factors = {"explain", "export_index", "item_vectors", "query_vectors", "similar_items"}
        assert public_methods(estimator) - asked <= (of_factors if without_factors else set()), name


@pytest.mark.parametrize("model", ["cstar-margin-classes", "cstar-base-classes"])
def test_one_class_per_row_is_one_label_to_list(tmp_path, model):
    for k in (2, 3, 4):
        with pytest.raises(ModelFileError, match=f"k_: expected 1 with one class per row, found {k}"):
            loaded(with_value(model, "values", "k_", k), tmp_path)


@pytest.mark.parametrize("value", [float("nan"), 0, -7, "all", 10**9, [1]])
def test_settings_of_a_run_are_not_taken_from_a_file(tmp_path, value):
    for model in ("latent", "cstar-base", "margin"):
        assert loaded(with_value(model, "params", "n_jobs", value), tmp_path).n_jobs is None
    assert "n_jobs" not in taken_apart(files()["latent"]).metadata["params"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0, -1.0, 1e-40, 1e-31, 1e39, None, "1", [1.0], 10**40])
def test_the_unit_of_a_base_is_checked(tmp_path, value):
    with pytest.raises(ModelFileError, match=r"base_unit_: expected a number from 1e-30 to 3\.4e"):
        loaded(with_value("reranker", "values", "base_unit_", value), tmp_path)


@pytest.mark.parametrize(
    ("model", "part", "key"),
    [
        ("reranker", "values", "n_components_"),
        ("latent", "params", "n_components"),
    ],
)
def test_a_small_file_allocates_nothing_large(tmp_path, model, part, key):
    outcome = judge(with_value(model, part, key, 200_000_000), tmp_path)
    assert (outcome.failure, outcome.rule) == (None, f"{key}: expected a whole number from  to ")


def test_a_base_whose_gaps_float32_has_not_is_named():
    queries, items, rng = np.repeat(np.arange(6), 3), np.tile(np.arange(6), 3), np.random.default_rng(0)
    scores = rng.normal(size=(6, 6))
    with pytest.raises(ValueError, match=r"base: expected lists that span 1e-30 to 3.4e\+38 times base_scale=4"):
        StructuredReranker(scores * 1e-38, n_components=2, stages=Stages(k=3), epochs=1).fit(queries, items)
    with pytest.warns(UserWarning, match="base: float32 cannot tell the scores of 6 of 6 rows apart"):
        StructuredReranker(1.0 + scores * 1e-12, n_components=2, stages=Stages(k=3), epochs=1).fit(queries, items)
    right = StructuredReranker(scores, n_components=2, stages=Stages(k=3), epochs=1).fit(queries, items)
    small = StructuredReranker(scores * 2.0**-60, n_components=2, stages=Stages(k=3), epochs=1).fit(queries, items)
    assert (right.rank([0, 1, 2], 6).ids == small.rank([0, 1, 2], 6).ids).all()


def test_a_reranker_never_takes_its_base_from_a_file(tmp_path):
    reranker = loaded(with_value("reranker", "params", "base", [[1.0] * 20] * 20), tmp_path)
    assert reranker.base is None
    assert reranker.set_params(base=Base()).rank([1], 3).ids.shape == (1, 3)


def test_what_cannot_be_loaded_is_not_saved(tmp_path):
    ranker = copy.deepcopy(fitted()["margin"]).set_params(max_iter=0)
    with pytest.raises(ValueError, match="max_iter: expected a whole number from 1"):
        ranker.save(tmp_path / "model.safetensors")
    ranker = copy.deepcopy(fitted()["margin"])
    ranker.coef_ = ranker.coef_ * np.nan
    with pytest.raises(ValueError, match="coef_: expected a float64 array of 1 dimension, numbers up to"):
        ranker.save(tmp_path / "model.safetensors")
    assert not any(tmp_path.iterdir())
