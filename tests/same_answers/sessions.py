"""Next items of sessions."""

from tests.same_answers.case import Case, learned, ranked


def ask(ranker):
    from slatewise import datasets

    sessions = datasets.make_sessions(n_sessions=900, n_items=60, random_state=4).sessions
    ranker.fit(sessions[:800])
    yield from learned(ranker)
    yield from ranked(ranker.rank(sessions[800:], k=7, exclude_seen=True))


def same(name, spelling):
    return Case(name, spelling, spelling, ask)


CASES = [
    same("neighbors", "SessionNeighbors()"),
    same("neighbors with reach", "SessionNeighbors(k=20, decay=0.9, reach=4.0, repeat_weight=0.5)"),
    same("counts", "CooccurrenceRanker()"),
    same("blend", "SessionBlend()"),
]
