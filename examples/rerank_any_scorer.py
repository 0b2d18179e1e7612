"""Put a stage of latent structured ranking on a scorer of your own, and search the best slate of a joint model."""

# ---
import numpy as np

from slatewise import StructuredReranker, datasets, inference
from slatewise.factors import Stages

pairs = datasets.make_sessions(4000, 200, n_clusters=20, follow=0.0, stay=0.8, random_state=0).sessions.pairs()
part = np.random.default_rng(0).integers(0, 4, len(pairs.queries))
counts = np.zeros((200, 200))
np.add.at(counts, (pairs.queries[part == 0], pairs.items[part == 0]), 1.0)


class CoOccurrence:
    """Anything with scores(queries, items); it was made from other pairs than the stage learns from."""

    def scores(self, queries, items):
        return np.log1p(counts)[np.ix_(queries, items)]


train, test = (part == 1) | (part == 2), part == 3
reranker = StructuredReranker(CoOccurrence(), n_components=16, stages=Stages(k=10), random_state=0)
reranker.fit(pairs.queries[train], pairs.items[train])
for stage, name in ((0, "the scorer alone"), (1, "with a stage on it")):
    recall = reranker.recall(pairs.queries[test], pairs.items[test], ks=(10, 30), stage=min(stage, reranker.n_stages_))
    print(f"{name}: recall@10 {recall[10]:.3f}, recall@30 {recall[30]:.3f}")

# One slate at a time: f = sum_i w_i s_i + sum_ij w_i w_j v_i . v_j, with the rows v that the stage has learnt beside
# scores in its unit. A stage is kept only if it helps.
if reranker.n_stages_:
    scores = CoOccurrence().scores([25], reranker.item_ids_) / reranker.base_unit_
    weights = reranker.position_weights_
    for search in (inference.greedy_slates, inference.beam_slates, inference.iterated_slates):
        found = search(scores, reranker.pair_factors_[0], weights)
        print(f"{search.__name__}: f {found.score[0]:.3f}, at most {found.upper_bound[0]:.3f}")
