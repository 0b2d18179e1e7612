"""Addresses at which there is no cluster are named before any work starts."""

import pytest

from slatewise import cluster
from slatewise.errors import ClusterError

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'slatewise[ray]'")
pytestmark = pytest.mark.ray


@pytest.mark.parametrize(
    "address", ["ray://127.0.0.1:1", "ray://no.such.host.invalid:10001", "127.0.0.1:1", "127.0.0.1:x"]
)
def test_an_address_without_a_cluster_is_named(address):
    with (
        pytest.raises(ClusterError, match=f"address: expected a running Ray cluster at '{address}', found none"),
        cluster.ray(address),
    ):
        pass
    assert not ray.is_initialized()
