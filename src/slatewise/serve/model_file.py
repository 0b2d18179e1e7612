"""Which models a service is started with; who only starts workers needs no more of a model than that."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from slatewise.core.rules import short_repr

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class ModelFile:
    """What a model is called, and where its file is."""

    name: str
    path: Path

    @classmethod
    def parse(cls, text: str) -> ModelFile:
        """Read ``path`` or ``name=path``; without a name the file has one.

        Examples
        --------
        >>> ModelFile.parse("models/songs.safetensors").name, ModelFile.parse("best=songs.safetensors").name
        ('songs', 'best')
        """
        name, equals, path = text.partition("=")
        if not equals or "/" in name:
            name, path = Path(text).name.removesuffix(".safetensors"), text
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"model: expected a name of letters, digits, '.', '_' and '-', found {short_repr(name)}")
        return cls(name, Path(path))


def check_names(files: Iterable[ModelFile]) -> list[ModelFile]:
    """Return the files; ValueError where there is none, or two have the same name."""
    found = list(files)
    names = [file.name for file in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if not names or twice is not None:
        shown_names = "none" if twice is None else f"{twice!r} twice: name one by NAME=PATH"
        raise ValueError(f"model: expected one or more, each with a name of its own, found {shown_names}")
    return found
