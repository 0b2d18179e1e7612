"""From a log of events to the next item: sessions, three rankers, a fair test, one file to serve from."""

# ---
import numpy as np

from slatewise import SessionCooccurrence, SessionNeighbors, SessionRanker, data, datasets, load

# A log, as a shop has it: which user took which item, and when.
made = datasets.make_sessions(3000, 300, n_clusters=30, random_state=0).sessions
visitor = np.repeat(np.arange(len(made)) % 400, np.diff(made.offsets))
when = np.repeat(7200.0 * np.arange(len(made)), np.diff(made.offsets)) + np.arange(len(made.items)) % 60

log = data.sessions_from_events(visitor, made.items, when, gap=1800)
train, test = data.split_sessions(log, by="time", test=0.1)
asked = test.prefixes()
print(f"{len(train)} sessions to learn from, {len(asked)} questions from later ones")

popular = np.argsort(-np.bincount(train.items), kind="stable")[:20]
print(f"most popular items: recall@20 {np.isin(asked.next_items, popular).mean():.3f}")
for ranker in (SessionNeighbors(), SessionCooccurrence(), SessionRanker(factors=None)):
    ranker.fit(train)
    recall = ranker.recall(asked, ks=[5, 20], unknown="ignore")
    print(f"{type(ranker).__name__}: recall@5 {recall[5]:.3f}, recall@20 {recall[20]:.3f}")

# The later sessions become part of what is known, and one file holds everything.
ranker = SessionNeighbors().fit(train).partial_fit(test)
ranker.save("model.safetensors")
print(load("model.safetensors").rank([[3, 33], [150]], k=5, exclude_seen=True))
