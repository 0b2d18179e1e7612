"""Rankers of sessions, slowly: dictionaries and loops, straight from the definitions."""

import math
from collections import Counter, defaultdict


def once(session):
    """Return the different items of a session, in the order in which they were there last."""
    return list(dict.fromkeys(reversed(session)))[::-1]


def popularity(sessions):
    with_item = Counter(item for session in sessions for item in set(session))
    return {item: n / len(sessions) - 1 for item, n in with_item.items()}


def neighbor_scores(sessions, query, *, k, decay, window, last_weight, repeat_weight, reach):
    """Return every item's score."""
    n_with = Counter(item for session in sessions for item in set(session))
    weights = defaultdict(float)
    for age, item in enumerate(reversed(query[-window:])):
        weights[item] += decay**age * math.log1p(len(sessions) / n_with[item])
    heaviest = sorted(weights.values(), reverse=True)
    similar = []
    for number, session in enumerate(sessions):
        items = once(session)
        shared = sorted((weights[item] for item in items if item in weights), reverse=True)
        if shared:
            similar.append((-sum(shared) * (1 / math.sqrt(len(items))), len(items), -number, items))
    assert len(heaviest) == len(weights)
    scores = defaultdict(float)
    latest = {item: place for place, item in enumerate(query[-window:])}
    for similarity, _, _, items in sorted(similar)[:k]:
        near = max(range(len(items)), key=lambda place: latest.get(items[place], -1))
        for place, item in enumerate(items):
            scores[item] -= similarity * (1 if reach is None else math.exp(-abs(place - near) / reach))
    return weighed(scores, sessions, query, last_weight, repeat_weight)


def count_scores(sessions, query, *, window, decay, backward, row_power, last_weight, repeat_weight):
    """Return every item's score."""
    rows = defaultdict(lambda: defaultdict(float))
    for session in sessions:
        for early in range(len(session)):
            for late in range(early + 1, min(early + window, len(session) - 1) + 1):
                rows[session[early]][session[late]] += 1 / (late - early)
                rows[session[late]][session[early]] += backward / (late - early)
    scores = defaultdict(float)
    for age, item in enumerate(reversed(query[-window:])):
        total = sum(rows[item].values())
        for other, count in rows[item].items():
            if count > 0:
                scores[other] += decay**age * count / total**row_power
    return weighed(scores, sessions, query, last_weight, repeat_weight)


def weighed(scores, sessions, query, last_weight, repeat_weight):
    for item in set(query):
        scores[item] *= last_weight if item == query[-1] else repeat_weight
    otherwise = popularity(sessions)
    return {item: scores[item] if scores[item] > 0 else otherwise[item] for item in otherwise}


def best(scores, k):
    """Return the best items, equal ones in the order of ids."""
    return sorted(scores, key=lambda item: (-scores[item], item))[:k]
