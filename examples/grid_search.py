"""Choose parameters with whole queries in each fold."""

# ---
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slatewise import BestFeatureRanker, datasets

sklearn.set_config(enable_metadata_routing=True)

queries = datasets.make_queries(n_queries=100, random_state=0)
search = GridSearchCV(
    make_pipeline(StandardScaler(), BestFeatureRanker()),
    {"bestfeatureranker__measure": ["ndcg@10", "map", "mrr"]},
    cv=GroupKFold(5),
)
search.fit(queries.X, queries.y, qid=queries.qid, groups=queries.qid)
print(search.best_params_, round(search.best_score_, 3))
