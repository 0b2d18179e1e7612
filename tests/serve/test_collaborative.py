"""A ranker of users over HTTP: known users, histories of new ones, and filters, as in a direct call."""

import numpy as np
import pytest

from slatewise import CollaborativeRanker, datasets
from slatewise.collaborative import ALS, ItemItem
from slatewise.serve.batching import install_warning_hook
from tests.serve.conftest import make_asking
from tests.serve.test_wrong import check_every_field

PARTS = (ItemItem(), ALS(4, epochs=2))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder, cache = tmp_path_factory.mktemp("users"), tmp_path_factory.mktemp("cache")
    pairs = datasets.make_sessions(60, 20, random_state=0).sessions.pairs()
    model = CollaborativeRanker(PARTS, validation_fraction=0).fit(pairs.queries, pairs.items)
    install_warning_hook()
    model.save(folder / "users.safetensors")
    asking = make_asking({"users": folder / "users.safetensors"}, cache, n_jobs=1)
    asking.service.models.look()
    yield asking, model
    asking.service.close()


@pytest.mark.parametrize(
    "switches", [{}, {"exclude_seen": False}, {"exclude": [[1], [2]]}, {"candidates": [1, 2, 3, 4, 5]}]
)
@pytest.mark.parametrize("form", ["users", "histories"])
def test_answers_are_those_of_a_direct_call(served, form, switches):
    asking, model = served
    queries = model.user_ids_[:2].tolist() if form == "users" else [[1, 2], [3]]
    status, answer = asking.post("/v1/models/users/rank", {"queries": queries, "k": 3, **switches})
    assert status == 200
    expected = model.rank(queries, 3, **switches)
    for place, row in enumerate(answer["answers"]):
        assert row["ids"] == list(expected.lists()[place])
        np.testing.assert_allclose(row["scores"], expected.list_scores(place), rtol=1e-4, atol=1e-5)


def test_a_history_has_no_last_item(served):
    asking, _ = served
    assert asking.post("/v1/models/users/rank", {"queries": [[1]], "k": 2, "exclude_seen": "last"})[0] == 422


def test_every_field_that_is_wrong_is_named(served):
    asking, _ = served
    assert check_every_field(asking) > 100


@pytest.mark.parametrize("method", [{"k": 3}, {"items": [1, 2]}])
def test_users_that_fit_never_saw_are_marked(served, method):
    asking, model = served
    known = int(model.user_ids_[0])
    path = f"/v1/models/users/{'rank' if 'k' in method else 'scores'}"
    status, answer = asking.post(path, {"queries": [known, 99999], "unknown": "ignore", **method})
    assert status == 200
    assert [row["nothing_known"] for row in answer["answers"]] == [False, True]
    assert answer["warnings"] == ["queries: 1 of 2 ids were not seen in fit"]
