"""``python -m slatewise.labeling.training_process PROJECT``: train a new version of a project's model, and end.

The last line on stderr says what became of it; the exit code is 0 where there is a new version.
"""

from __future__ import annotations

import os
import sys

from slatewise.core.errors import printable
from slatewise.labeling.retraining import retrain
from slatewise.labeling.store.project import Project

_POLITE = 10
"""Those who answer come first."""


def main(path: str) -> int:
    """Train; return the exit code."""
    if os.name == "posix":
        os.nice(_POLITE)
    try:
        with Project.open(path) as project:
            trained = retrain(project)
    except Exception as error:  # what a person sees is one line
        print(printable(f"{type(error).__name__}: {error}".replace("\n", " ")), file=sys.stderr)
        return 1
    found = f"Version {trained.version}, from {trained.n_items} items of which {trained.n_known} labels are known."
    print(found, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
