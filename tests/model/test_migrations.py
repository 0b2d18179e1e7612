"""Migrations: every older version has one, none is believed, and newer versions are refused by name."""

import numpy as np
import pytest
from tests.fuzz.models.alter import put_together, taken_apart
from tests.model.format_1.write import HERE

from slatewise import MarginRanker, load
from slatewise.core.by_name import found_at
from slatewise.core.errors import ModelFileError
from slatewise.model import migrations, saving
from slatewise.model.file import FORMAT_VERSION, ModelCard, ModelState
from slatewise.model.migrations import migrated

CARD = ModelCard("slatewise 0.1.0", n_lists=3, n_rows=9, data_sha256="00")


def test_every_older_version_has_a_migration():
    newest = {name: found_at(home, name).file_version for name, home in saving._HOMES.items()}
    assert set(migrations.FORMATS) == set(range(1, FORMAT_VERSION))
    older = {(name, version) for name, last in newest.items() for version in range(1, last)}
    assert set(migrations.ESTIMATORS) == older


def test_migrations_are_applied_in_their_order(monkeypatch):
    def add(word):
        return lambda state: ModelState(
            state.estimator, state.params, {"said": [*state.values.get("said", []), word]}, {}, CARD, 1, state.format
        )

    class_tables = {("X", version): add(f"class {version}") for version in (1, 2)}
    monkeypatch.setattr(migrations, "FORMATS", {1: add("format 1"), 2: add("format 2")})
    monkeypatch.setattr(migrations, "FORMAT_VERSION", 3)
    found = {}
    for first, version in ((1, 0), (2, 1), (3, 1), (3, 2), (3, 3)):
        monkeypatch.setattr(migrations, "ESTIMATORS", class_tables)
        state = migrated(ModelState("X", {}, {}, {}, CARD, version, first), 3, "file")
        assert (state.format, state.estimator_version) == (3, 3)
        found[first, version] = state.values.get("said", [])
    assert found == {
        (1, 0): ["format 1", "format 2", "class 1", "class 2"],
        (2, 1): ["format 2", "class 1", "class 2"],
        (3, 1): ["class 1", "class 2"],
        (3, 2): ["class 2"],
        (3, 3): [],
    }


def file_with(path, source, **changes):
    parts = taken_apart(source.read_bytes())
    parts.metadata |= changes
    path.write_bytes(put_together(parts))
    return path


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    MarginRanker().fit(rng.normal(size=(12, 2)), np.arange(12) % 2, group=[12]).save(tmp_path / "model")
    return tmp_path / "model"


def test_newer_files_are_refused_by_name(model, tmp_path):
    newer = file_with(tmp_path / "newer", model, estimator_version=2)
    with pytest.raises(ModelFileError, match="newer: expected a MarginRanker of version 1 to 1, found 2: read it with"):
        load(newer)
    newer = file_with(tmp_path / "newer", model, format=FORMAT_VERSION + 1)
    with pytest.raises(ModelFileError, match="newer: expected format version 1 to 2, found 3: read it with a newer s"):
        load(newer)


@pytest.mark.parametrize("version", [0, -1, 10**30, 10**4000])
def test_impossible_versions_are_refused(model, tmp_path, version):
    with pytest.raises(ModelFileError, match="expected a MarginRanker of version 1 to 1, found") as refused:
        load(file_with(tmp_path / "other", model, estimator_version=version))
    assert len(str(refused.value)) < 400


def without(parts, *names):
    for name in names:
        parts.tensors.pop(name, None)


@pytest.mark.parametrize(
    "alter",
    [
        lambda parts: parts.tensors.update(classes_=np.zeros((0, 1 << 40))),
        lambda parts: parts.tensors.update(classes_=np.array(3)),
        lambda parts: parts.tensors.update(classes_=np.arange(2)),
        lambda parts: parts.tensors.update(intercept_=np.zeros((0, 1 << 40))),
        lambda parts: parts.tensors.update(intercept_=np.zeros(9)),
        lambda parts: parts.tensors.update(multilabel_=np.array([True])),
        lambda parts: parts.metadata["values"].update(multilabel_=False),
        lambda parts: parts.metadata["values"].update(multilabel_=None),
        lambda parts: without(parts, "classes_"),
        lambda parts: without(parts, "intercept_"),
        lambda parts: without(parts, "classes_", "intercept_", "pair_"),
    ],
)
def test_a_migrated_file_passes_the_door_like_any_other(tmp_path, alter):
    parts = taken_apart((HERE / "old_cstar_labels.safetensors").read_bytes())
    alter(parts)
    (tmp_path / "hostile").write_bytes(put_together(parts))
    with pytest.raises(ModelFileError, match="hostile: "):
        load(tmp_path / "hostile")


def cstar_of_version_2(params):
    arrays = {"classes_": np.arange(2), "intercept_": np.zeros(2)}
    return ModelState("CStarRanker", params, {}, arrays, CARD, 2, FORMAT_VERSION)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"scores": "linear", "surrogate": "max-margin", "C": 1.0}),
        (
            {"scores": "pretrained", "surrogate": "likelihood", "C": "auto"},
            {"scores": "pretrained", "surrogate": "likelihood-k", "C": "auto"},
        ),
        ({"scores": "rbf", "k": 3}, {"scores": "rbf", "surrogate": "max-margin", "C": 1.0, "k": 3}),
        ({"surrogate": ["likelihood"]}, {"scores": "linear", "surrogate": ["likelihood"], "C": 1.0}),
    ],
)
def test_scores_and_likelihoods_of_version_2_are_what_they_were(before, after):
    state = migrated(cstar_of_version_2(before), 3, "file")
    assert state.params == after
    assert state.arrays["base_coef_"].shape == (0, 0)
    assert state.arrays["base_intercept_"].shape == (0,)
