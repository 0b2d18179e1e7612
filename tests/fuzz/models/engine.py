"""Alter a file, load it, ask it everything, and say what went wrong."""

from __future__ import annotations

import copy
import faulthandler
import pickle
import random
import re
import resource
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from slatewise import load
from slatewise.core.errors import ModelFileError
from tests.fuzz.models.alter import altered
from tests.fuzz.models.asked import Question, questions
from tests.fuzz.models.fitted import fitted

LIMIT_SECONDS = 60
"""A machine may be busy; what an attack is after is a case that never ends."""
LIMIT_BYTES = 1 << 30
"""Beyond what the process has when a case begins."""


class TooSlow(BaseException):
    """No ``except Exception`` of the library can swallow it."""


@dataclass(frozen=True)
class Outcome:
    """How a case ended; ``failure`` says what is not allowed, ``rule`` which rule refused the file."""

    failure: str | None
    rule: str | None = None


@cache
def files() -> dict[str, bytes]:
    """Return every fitted model as the bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        found = {}
        for name, estimator in fitted().items():
            estimator.save(path)
            found[name] = path.read_bytes()
    return found


@cache
def known_answers() -> dict[str, dict[str, bytes]]:
    """Return what every fitted model answers; from then on nothing more is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        return {name: answers(copy.deepcopy(estimator), Path(folder)) for name, estimator in fitted().items()}


def answers(estimator: Any, folder: Path) -> dict[str, bytes]:
    """Return what an estimator answers to every question, as bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = enumerate(questions(estimator, folder))
        return {f"{place} {one.method}": pickle.dumps(_answer(one)) for place, one in asked}


def _answer(question: Question) -> Any:
    try:
        found = question.call()
    except ValueError as error:
        if not question.may_refuse:
            raise
        return str(error)
    return (
        {name: vars(found)[name] for name in found._learned if name in vars(found)}
        if question.method == "partial_fit"
        else found
    )


def case(name: str, seed: int, index: int) -> tuple[bytes, str]:
    """Return the file of one case and what was done to it; it depends on nothing else, so it can be made again."""
    return altered(random.Random(f"{seed}/{name}/{index}"), files()[name])


def judge(data: bytes, folder: Path, mmap: bool = False) -> Outcome:
    """Load a file and ask it everything, under limits."""
    path = folder / "altered.safetensors"
    path.unlink(missing_ok=True)  # one that is mapped must not be written to
    path.write_bytes(data)
    with _limits(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator = load(path, mmap)
        except ModelFileError as error:
            return _refusal(str(error), str(path))
        except (Exception, TooSlow) as error:  # whatever else comes out is what the attack is looking for
            return Outcome(f"load raised {error!r:.300}, expected a ModelFileError")
        for question in questions(estimator, folder):
            failure = _asked(question)
            if failure:
                return Outcome(f"{question.method}: {failure}")
    return Outcome(None)


def _refusal(message: str, path: str) -> Outcome:
    if not message.startswith(f"{path}: ") or not re.search(r"expected .|does not match its checksum", message):
        return Outcome(f"refused by {message!r}, expected the file's name and what was expected")
    words = message.removeprefix(f"{path}: ")
    return Outcome(None, re.sub(r"[^a-zA-Z_ :']", "", words.split(", found")[0])[:60])


def _asked(question: Question) -> str:
    try:
        return question.fault(question.call())
    except ValueError as error:
        if question.may_refuse and re.match(r"\w+: expected ", str(error)):
            return ""
        return f"raised {error!r:.300}"
    except (Exception, TooSlow) as error:
        return f"raised {error!r:.300}"


@contextmanager
def _limits() -> Iterator[None]:
    """Give a case so much memory and time; whatever does not even listen to signals ends the process later."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + LIMIT_BYTES, before[1]))
    old = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_SECONDS)
    faulthandler.dump_traceback_later(3 * LIMIT_SECONDS, exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, old)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _stop(*_: object) -> None:
    raise TooSlow(f"more than {LIMIT_SECONDS} s")


def batch(name: str, seed: int, first: int, count: int) -> tuple[list[str], list[str]]:
    """Return the rules that refused files, and descriptions of failures."""
    rules, failures = list[str](), list[str]()
    known_answers()
    with tempfile.TemporaryDirectory() as folder:
        for index in range(first, first + count):
            data, done = case(name, seed, index)
            outcome = judge(data, Path(folder), mmap=index % 3 == 0)
            if outcome.rule is not None:
                rules.append(outcome.rule)
            if outcome.failure:
                command = f"python -m tests.fuzz.models --model {name} --seed {seed} --first {index} --cases 1"
                failures.append(f"{name}: {done}\n  {outcome.failure}\n  again: {command}")
    return rules, failures
