"""600 requests made from the document, some of them in MessagePack too; ``tests.serve.endurance fuzz`` makes more.

No server error, no answer that the document does not know, and none that depends on how it is written.
"""

import pytest

from slatewise.serve.settings import Limits
from tests.serve.conftest import make_asking
from tests.serve.generated import check_generated

pytest.importorskip("schemathesis", reason="schemathesis is not installed")


def test_generated_requests(files, tmp_path):
    small = Limits(queries=3, k=5, numbers=100, ids=4)
    asking = make_asking({name: files[name] for name in ("plays", "tags", "documents")}, tmp_path, limits=small)
    asking.service.models.look()
    counts, n_twins = check_generated(asking, 600, twins=4)
    asking.service.close()
    assert sum(counts.values()) >= 600  # by schemathesis
    assert n_twins > 80
    assert counts[200] > 40
    assert max(counts) < 500, counts
