"""One person's visit to one item: what was said of it, and what that makes of the next question."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Bools, Bytes, Ints
from slatewise.cstar.inference.any_size import chances
from slatewise.labeling.item_view import SAID, ItemView, ListedLabel, Question
from slatewise.labeling.plan import QUESTIONS
from slatewise.labeling.policies import MostProbable, Situation
from slatewise.labeling.reasons import Reason, model_reason, pushes
from slatewise.labeling.store.records import How
from slatewise.labeling.store.votes import HOWS, Votes
from slatewise.labeling.workbench import Bench

WITHOUT_MODEL = "Without the model, every label in turn: so it can be measured."


@dataclass(eq=False)
class Visit:
    """What is known of an item to the person who has it."""

    item: int
    honest: bool
    """Whether it is labelled without the model."""
    said: Bytes
    """(labels,) what the person said."""
    how: NDArray[np.int8]
    """(labels,) why there is an answer of the person's, as in :attr:`Votes.how`; -1: there is none."""
    others: Bytes
    """(labels,) what others said, where that is known to the person."""
    from_list: dict[int, float] = field(default_factory=dict[int, float])
    """Labels that the person volunteered when the list showed them, and how likely they were."""

    @classmethod
    def of(cls, item: int, annotator: int, votes: Votes, bench: Bench) -> Visit:
        """Begin a visit, or take one up again."""
        n_labels, own = len(bench.names), votes.annotator == annotator
        said, how = np.full(n_labels, -1, dtype=np.int8), np.full(n_labels, -1, dtype=np.int8)
        said[votes.label[own]], how[votes.label[own]] = votes.said[own], votes.how[own]
        others = np.full(n_labels, -1, dtype=np.int8)
        if bench.plan.overlap == 1 and not own.all():
            columns = {name: column[~own] for name, column in vars(votes).items()}
            columns["item"] = np.zeros_like(columns["item"])
            others = Votes(**columns).known((1, n_labels)).values[0]
        return cls(item, bool(bench.honest.inside[item]), said, how, others)

    @property
    def known(self) -> Bytes:
        """(labels,)."""
        return np.where(self.said >= 0, self.said, self.others)

    @property
    def asked(self) -> Bools:
        """(labels,) what need not be asked any more; "don't know" is an answer."""
        return (self.how >= 0) | (self.others >= 0)

    def note(self, label: int, said: int, how: How) -> None:
        """Note an answer of the person's."""
        self.said[label], self.how[label] = said, HOWS.index(how)

    def view(self, bench: Bench, notes: tuple[str, ...]) -> ItemView:
        """Return what to show to the person."""
        seen = self._without_model(bench) if self.honest else self._with_model(bench)
        return replace(seen, notes=notes)

    def _without_model(self, bench: Bench) -> ItemView:
        left, known = np.flatnonzero(~self.asked), self.known
        reason = Reason(WITHOUT_MODEL)
        question = Question(int(left[0]), bench.names[left[0]], None, reason) if len(left) else None
        listed = [ListedLabel(int(label), bench.names[label], None, "yes") for label in np.flatnonzero(known == 1)]
        return ItemView(
            item=self.item,
            question=question,
            listed=tuple(listed),
            answered=self._answered(bench, None),
            order=np.argsort(-known, kind="stable"),
            probability=np.full(len(known), np.nan),
            asked=self._n_asked(),
            instead_of=len(known),
            chance=np.nan,
            enough=not len(left),
            calibrated=False,
            honest=True,
            basis=bench.scored.basis,
            version=None,
            notes=(),
        )

    def _with_model(self, bench: Bench) -> ItemView:
        scored, known, asked = bench.scored, self.known, self.asked
        cold = scored.basis == "frequency"
        rows = scored.rows.take(np.array([self.item]))
        seen = scored.rule.look(rows, known[None], asked[None])
        margins = seen.log_odds[0]
        askable = ~asked & np.isfinite(margins)
        policy = MostProbable() if cold else QUESTIONS[bench.plan.policy]
        rng = np.random.default_rng([bench.plan.seed, self.item, int(asked.sum())])
        label = int(policy.ask(Situation(rows, known[None], seen.log_odds, askable[None]), rng)[0])
        chance, order = chances(margins), np.argsort(-margins, kind="stable")
        question = None
        if label >= 0 and cold:
            question = Question(label, bench.names[label], float(chance[label]), _frequency_reason(bench, label))
        elif label >= 0:
            before = rows.margins(np.full((1, len(known)), -1, dtype=np.int8))[0]
            moved = pushes(rows, label, before, margins, known, bench.names)
            reason = model_reason(float(chances(before)[label]), float(chance[label]), moved)
            question = Question(label, bench.names[label], float(chance[label]), reason)
        return ItemView(
            item=self.item,
            question=question,
            listed=self._listed(order, chance, bench),
            answered=self._answered(bench, chance),
            order=order,
            probability=chance,
            asked=self._n_asked(),
            instead_of=len(known),
            chance=np.nan if cold else float(seen.chance[0]),
            enough=not askable.any() or (bool(seen.stop[0]) and not cold),
            calibrated=scored.rule.n_rows > 0,
            honest=False,
            basis=scored.basis,
            version=scored.version,
            notes=(),
        )

    def _listed(self, order: Ints, chance: NDArray[np.float64], bench: Bench) -> tuple[ListedLabel, ...]:
        known, asked = self.known, self.asked
        there, not_asked = order[known[order] == 1], order[~asked[order]][: bench.plan.list_length]
        return tuple(
            ListedLabel(int(label), bench.names[label], float(chance[label]), SAID[1] if known[label] == 1 else None)
            for label in (*there, *not_asked)
        )

    def _answered(self, bench: Bench, chance: NDArray[np.float64] | None) -> tuple[ListedLabel, ...]:
        return tuple(
            ListedLabel(label, bench.names[label], None if chance is None else float(chance[label]), SAID[said])
            for label, said in zip(
                np.flatnonzero(self.how >= 0).tolist(), self.said[self.how >= 0].tolist(), strict=True
            )
        )

    def _n_asked(self) -> int:
        return int((self.how == HOWS.index("asked")).sum())


def _frequency_reason(bench: Bench, label: int) -> Reason:
    values = bench.said.values[:, label]
    found, known = int((values == 1).sum()), int((values >= 0).sum())
    return Reason(
        f"No model yet: found in {found} of {known} items so far" if known else "No model yet, no answers yet"
    )
