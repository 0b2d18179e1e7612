"""Next items of sessions."""

from tests.same_answers.case import Case, learned, ranked


def ask(ranker):
    from slatewise import datasets

    sessions = datasets.make_sessions(n_sessions=900, n_items=60, random_state=4).sessions
    ranker.fit(sessions[:800])
    yield from learned(ranker)
    yield from ranked(ranker.rank(sessions[800:], k=7, exclude_seen=True))
    yield from (
        ("candidates/" + part, value)
        for part, value in ranked(ranker.rank(sessions[800:], k=3, candidates=[1, 2, 3, 4]))
    )
    yield "scores", ranker.scores(sessions[800:], [5, 6, 7])
    yield "recall", list(ranker.recall(sessions[800:], ks=[5, 10]).values())


def grow(ranker):
    """Fit, and then learn from further sessions."""
    from slatewise import datasets

    sessions = datasets.make_sessions(n_sessions=900, n_items=60, random_state=4).sessions
    ranker.fit(sessions[:500]).partial_fit(sessions[500:800])
    yield from learned(ranker)
    yield from ranked(ranker.rank(sessions[800:], k=7))


def same(name, spelling, ask=ask):
    return Case(name, spelling, spelling, ask)


COUNTS = "window=5, decay=0.9, backward=0.5, row_power=0.5, last_weight=2.0"
CASES = [
    same("neighbors", "SessionNeighbors()"),
    same("neighbors with reach", "SessionNeighbors(k=20, decay=0.9, reach=4.0, repeat_weight=0.5)"),
    same("neighbors, further", "SessionNeighbors(reach=None)", grow),
    Case("counts", "CooccurrenceRanker()", "SessionCooccurrence()", ask),
    Case("counts, fixed", f"CooccurrenceRanker({COUNTS})", f"SessionCooccurrence({COUNTS})", ask),
    Case("counts, further", "CooccurrenceRanker()", "SessionCooccurrence()", grow),
    Case("blend", "SessionBlend()", "SessionBlend()", ask),
]
