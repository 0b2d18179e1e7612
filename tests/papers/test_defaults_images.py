"""GraphMatcher with default settings, on the frames of a film that are 90 apart."""

import pytest

from slatewise import GraphMatcher
from slatewise_papers.defaults import images as defaults_images


@pytest.mark.usefixtures("shared_data")
def test_every_matcher_beats_the_plain_assignment(monkeypatch):
    monkeypatch.setattr(defaults_images, "MATCHERS", {"GraphMatcher()": GraphMatcher(tol=0.1)})
    found = {row.name.removeprefix("cmu_house: "): row.measured for row in defaults_images.rows(True, 0)}
    plain = found.pop("assignment, nothing learned")["test, separation 90"]
    assert found["GraphMatcher()"]["test, separation 90"] < 0.6 * plain
    assert found["GraphMatcher()"]["seconds, separation 90"] > 0
