"""The page about data sets: its examples run, and its table is the library's."""

import doctest
from pathlib import Path

from slatewise import datasets

PAGE = Path(__file__).parents[2] / "docs" / "datasets.rst"


def test_the_examples_run():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0


def test_the_table_has_every_set_and_its_terms():
    text = PAGE.read_text()
    for name in datasets.names():
        told = datasets.describe(name)
        assert f"   * - ``{name}``\n     - {told.kind}\n     - {told.size}\n     - {told.terms}\n" in text
    assert text.count("   * - ``") == len(datasets.names())
