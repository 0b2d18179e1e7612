"""How blocks are dealt out, and what a worker must be."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slatewise import cluster
from slatewise.cluster.context import _require_alike
from slatewise.cluster.worker import about
from slatewise.cluster.workers import shares
from slatewise.errors import ClusterError


@given(st.integers(1, 3000), st.integers(1, 40))
def test_every_block_has_one_worker_and_shares_are_even(n_blocks, n_workers):
    dealt = shares(n_blocks, n_workers)
    assert [number for first, last in dealt for number in range(first, last)] == list(range(n_blocks))
    assert len(dealt) == min(n_workers, n_blocks)
    sizes = [last - first for first, last in dealt]
    assert max(sizes) <= 1.25 * n_blocks / n_workers + 1


def test_workers_must_have_the_versions_that_are_here():
    here = about()
    _require_alike([here, here])
    other = here._replace(node="far", versions={**here.versions, "numpy": "1.0"})
    with pytest.raises(ClusterError, match=r"workers: expected numpy .* on every machine, as here, found 1.0 on far"):
        _require_alike([here, other])


def test_other_processors_are_a_warning():
    here = about()
    with pytest.warns(UserWarning, match="2 kinds .* may differ in their last bits"):
        _require_alike([here, here._replace(cpu="another")])


@pytest.mark.parametrize("workers", [0, -1, 1.5, True])
def test_a_bad_number_of_workers_is_named(workers):
    with pytest.raises(ValueError, match="workers: expected a whole number >= 1"), cluster.ray(workers=workers):
        pass


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"a cluster needs Ray: pip install 'slatewise\[ray\]'"), cluster.ray():
        pass
