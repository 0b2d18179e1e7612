"""Names that load on first use: the one place where the package imports what a table says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_getattr(package: dict[str, Any], homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package: ``homes`` says where each name lives, and a name once found stays."""

    def attribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        package[name] = getattr(import_module(homes[name]), name)
        return package[name]

    return attribute
