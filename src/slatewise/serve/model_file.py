"""Which models a service is started with; who only starts workers needs no more of a model than that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from slatewise.core.rules import shown

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
            raise ValueError(f"model: expected a name of letters, digits, '.', '_' and '-', found {shown(name)}")
        return cls(name, Path(path))
