"""What the README shows runs, and prints what it says."""

import doctest
import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
_NUMBER = re.compile(r"-?\d+\.\d+")


class _NearlyTheSame(doctest.OutputChecker):
    """Compares numbers to three digits: the last ones belong to a processor."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        pairs = zip(_NUMBER.findall(want), _NUMBER.findall(got), strict=False)
        near = all(float(one) == pytest.approx(float(other), rel=5e-3, abs=5e-4) for one, other in pairs)
        return near and _NUMBER.sub("#", want) == _NUMBER.sub("#", got)


def test_the_code_of_the_readme_prints_what_it_says(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    test = doctest.DocTestParser().get_doctest(code, {}, "README", "README.md", 0)
    doctest.DocTestRunner(_NearlyTheSame()).run(test, clear_globs=False)
    assert len(test.examples) == 10
    assert not capsys.readouterr().out


def test_it_is_short():
    assert len(README.splitlines()) <= 110


def test_it_names_files_that_are_there():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target
