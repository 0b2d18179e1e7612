"""Hypothesis strategies: small ragged lists with many ties, rows in any order."""

from dataclasses import dataclass

from hypothesis import strategies as st

FEW = st.integers(0, 3)


@dataclass(frozen=True)
class Lists:
    relevance: list
    scores: list
    qid: list
    ids: list

    def split(self):
        """(relevance, scores, ids) of each list, in order of first appearance."""
        names = list(dict.fromkeys(self.qid))
        rows = {name: [i for i, q in enumerate(self.qid) if q == name] for name in names}
        return [
            ([self.relevance[i] for i in r], [self.scores[i] for i in r], [self.ids[i] for i in r])
            for r in rows.values()
        ]


@st.composite
def ragged(draw, grades=FEW, longest=5, scores=FEW):
    names = draw(st.sampled_from(["text", "number", "float"]))
    name = {"text": lambda i: f"q{i}", "number": lambda i: 10 - 3 * i, "float": lambda i: i / 2}[names]
    sizes = draw(st.lists(st.integers(1, longest), min_size=1, max_size=4))
    qid = draw(st.permutations([name(i) for i, size in enumerate(sizes) for _ in range(size)]))
    n = len(qid)
    return Lists(
        draw(st.lists(grades, min_size=n, max_size=n)),
        draw(st.lists(scores, min_size=n, max_size=n)),
        list(qid),
        [f"d{i}" for i in draw(st.permutations(range(n)))],
    )
