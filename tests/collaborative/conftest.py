import numpy as np
import pytest
from scipy.sparse import csr_array


@pytest.fixture
def make_matrix():
    """Draw a sparse 0/1 matrix (users, items) with at least one entry in each row."""

    def make(n_users, n_items, share=0.2, seed=0):
        rng = np.random.default_rng(seed)
        dense = (rng.random((n_users, n_items)) < share).astype(np.float32)
        dense[np.arange(n_users), rng.integers(n_items, size=n_users)] = 1.0
        return csr_array(dense)

    return make
