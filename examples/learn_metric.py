"""Learn a distance that puts wines of the same grower first, then use it for retrieval and for neighbors."""

# ---
import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slatewise import MetricRanker

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# In front of a neighbor classifier; C and the loss by cross-validation.
model = make_pipeline(StandardScaler(), MetricRanker(), KNeighborsClassifier(3))
search = GridSearchCV(model, {"metricranker__loss": ["auc", "map"], "metricranker__C": [0.1, 1, 10]}, cv=5)
search.fit(X_train, y_train)
print(f"{search.best_params_}: accuracy {search.score(X_test, y_test):.3f}")

# The certificate, and the map to few dimensions.
ranker = search.best_estimator_[1]
print(f"certified: {ranker.lower_bound_:.4f} <= optimum <= {ranker.objective_:.4f}")
print(f"{X.shape[1]} features -> {len(ranker.components_)} dimensions")

# Retrieval: queries that are not in the catalogue, with lists of what is relevant to them.
scaled = StandardScaler().fit_transform(X)
items, queries = scaled[::2], scaled[1::2]
relevance = csr_array((y[1::2][:, None] == y[::2]).astype(np.int8))
finder = MetricRanker(loss="mrr", C=10).fit(items, relevance=relevance, queries=queries)
print(finder.rank(queries[:3], k=5))  # row numbers of items, minus their squared distances
print(f"mean average precision {finder.score(queries, relevance=relevance):.3f}")
