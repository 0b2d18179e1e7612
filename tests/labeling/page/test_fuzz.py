"""Requests of all kinds, made from the page's own OpenAPI, are answered as that says."""

import pytest

pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from tests.labeling.page.fuzz import both_pages, fuzz


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    with both_pages(tmp_path_factory.mktemp("fuzz")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_training(monkeypatch):
    monkeypatch.setattr("slatewise.labeling.retraining.Trainer.start", lambda self: False)


def test_generated_requests_are_answered_as_documented(pages):
    found = fuzz(pages, pages[0].get("/openapi.json"), 1000)  # some routes have no wrong requests
    assert found.faults == []
    assert found.requests >= 900
    assert {200, 403, 404, 409, 422} <= set(found.statuses)
    assert max(found.statuses) < 500


def test_an_answer_that_is_not_documented_would_be_seen(pages):
    schema = pages[0].get("/openapi.json")
    schema["paths"] = {"/api/items/{number}": schema["paths"]["/api/items/{number}"]}
    del schema["paths"]["/api/items/{number}"]["get"]["responses"]["422"]
    (fault,) = fuzz(pages, schema, 40).faults
    assert "Undocumented status code" in fault


def test_refusals_of_the_guard_are_documented_as_text(pages):
    for route in (route for methods in pages[0].get("/openapi.json")["paths"].values() for route in methods.values()):
        for status in ("400", "401", "403", "408", "413", "421", "429"):
            assert set(route["responses"][status]["content"]) == {"application/json", "text/plain"}
