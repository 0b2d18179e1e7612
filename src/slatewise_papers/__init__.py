"""One module a paper: its tables on the data at hand, the published number beside ours.

Each module has ``run(data, quick) -> Reproduction`` and is listed in ``PAPERS``; one that cuts folds at random takes
their seed as well and is listed in ``SEEDED``.
"""

from slatewise_papers._reproduction import PAPERS, Reproduction, Row, reproduce

__all__ = ["PAPERS", "Reproduction", "Row", "reproduce"]
