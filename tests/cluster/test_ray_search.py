"""A search through joblib's Ray backend: every process has the CPUs that Ray gave it, and finds what one finds."""

import joblib
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold

from slatewise import MarginRanker, datasets
from slatewise.core.running.executor import thread_count

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'slatewise[ray]'")
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]


def test_a_search_on_ray_finds_the_same_and_takes_no_more_threads_than_it_was_given():
    from ray.util.joblib import register_ray

    register_ray()
    queries = datasets.make_queries(n_queries=30, random_state=5)

    def chosen(n_jobs):
        with config_context(enable_metadata_routing=True):
            search = GridSearchCV(MarginRanker(tol=1e-2), {"C": [0.1, 10.0]}, cv=GroupKFold(2), n_jobs=n_jobs)
            search.fit(queries.X, queries.y, qid=queries.qid, groups=queries.qid)
        return search.best_params_, search.cv_results_["mean_test_score"].tolist()

    ray.init("local", num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
    try:
        with joblib.parallel_backend("ray"):
            assert joblib.Parallel(n_jobs=2)(joblib.delayed(thread_count)() for _ in range(4)) == [1] * 4
            found = chosen(2)
        assert thread_count(3) == 3
    finally:
        ray.shutdown()
    assert found == chosen(1)
