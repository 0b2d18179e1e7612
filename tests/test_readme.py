"""What the README and the guides show runs, and prints what it says."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
_NUMBER = re.compile(r"-?\d+\.\d+")


class _NearlyTheSame(doctest.OutputChecker):
    """Compares numbers to three digits: the last ones belong to a processor."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        pairs = zip(_NUMBER.findall(want), _NUMBER.findall(got), strict=False)
        near = all(float(one) == pytest.approx(float(other), rel=5e-3, abs=5e-4) for one, other in pairs)
        return near and super().check_output(_NUMBER.sub("#", want), _NUMBER.sub("#", got), optionflags)


def test_the_code_of_the_readme_prints_what_it_says(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    test = doctest.DocTestParser().get_doctest(code, {}, "README", "README.md", 0)
    doctest.DocTestRunner(_NearlyTheSame()).run(test, clear_globs=False)
    assert len(test.examples) == 10
    assert not capsys.readouterr().out


@pytest.mark.parametrize("guide", ["fitting", "datasets", "readers", "tags"])
def test_the_examples_of_a_guide_print_what_it_says(capsys, guide):
    test = doctest.DocTestParser().get_doctest((ROOT / "docs" / f"{guide}.rst").read_text(), {}, guide, None, 0)
    doctest.DocTestRunner(_NearlyTheSame(), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(test)
    assert test.examples
    assert not capsys.readouterr().out


def test_it_is_short():
    assert len(README.splitlines()) <= 110


def test_it_names_files_that_are_there():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
