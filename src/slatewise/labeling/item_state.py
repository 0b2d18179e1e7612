"""One item as one person sees it: the answers so far, the next question and why, the model's list, how sure it is.

The log-odds of a label that is not in the core are ``s_i + sum over core labels c of G_ci t_c``. When answers change
how likely the core labels are, they move by about

    sum over c of G_ci (P(c | answers) - P(c)) ,

exactly if the answers decide the core; a core label is moved by all others in the same way. Each term is a *push*, and
the strongest pushes are the reason that is shown with a question.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.cstar.inference.any_size import chances
from slatewise.labeling.labeling_state import Bench
from slatewise.labeling.plan import QUESTIONS
from slatewise.labeling.questions.policies import MostProbable, Situation
from slatewise.labeling.questions.rows import LabelRows
from slatewise.labeling.scored_items import Basis
from slatewise.labeling.store.known_labels import HOWS, Votes
from slatewise.labeling.store.records import How

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


Word: TypeAlias = Literal["yes", "no", "don't know"]
WORDS: dict[str, int] = {"yes": 1, "no": 0, "don't know": -1}
SAID: dict[int, Word] = {1: "yes", 0: "no", -1: "don't know"}


class Question(NamedTuple):
    """A label to ask for."""

    label: int
    name: str
    probability: float | None
    """That it is there, given the answers; None where no model is asked."""
    reason: Reason


class ListedLabel(NamedTuple):
    """A label of the list."""

    label: int
    name: str
    probability: float | None
    said: Word | None
    """What the person said of it; None: nothing."""


@dataclass(frozen=True, eq=False)
class ItemView:
    """An item as it stands for one person; made anew after every act."""

    item: int
    question: Question | None
    """None where nothing is left to ask."""
    listed: tuple[ListedLabel, ...]
    """What the person said yes to, then the most probable labels without an answer; the latter only with a model."""
    answered: tuple[ListedLabel, ...]
    """All that the person answered, whatever it was, by the number of the label."""
    order: Ints
    """(labels,) all labels, those said to be there first, then by probability, those said not to be there last."""
    probability: Floats
    """(labels,) that they are there, given the answers; NaN without the model."""
    asked: int
    """How many questions the person answered."""
    instead_of: int
    """How many there would be without a model: one per label."""
    chance: float
    """That nothing that was not asked is there; NaN where no model says so."""
    enough: bool
    """Whether that is as much as the plan wants, or nothing is left to ask."""
    calibrated: bool
    """Whether ``enough`` keeps its promise; else it is what the model believes."""
    honest: bool
    """Whether the item is labelled without the model, so that it can be measured."""
    basis: Basis
    version: int | None
    """The version of the model."""
    notes: tuple[str, ...]
    """What the person should know: that there is no model yet, that somebody else has the item, and so on."""


_MOST_PUSHES = 3
_LEAST_PUSH = 0.05


class Push(NamedTuple):
    """What another label did to the log-odds of the one that is asked for."""

    label: int
    name: str
    by: float
    because: str
    """"yes" or "no" where somebody said so of it; "likelier" or "less likely" where the model infers that."""


class Reason(NamedTuple):
    """Why a label is asked for."""

    text: str
    """For people."""
    before: float | None = None
    """How likely the label was before the first answer; None where no model says so."""
    pushes: tuple[Push, ...] = ()
    """The strongest first."""


def pushes(rows: LabelRows, label: int, before: Floats, now: Floats, known: Bytes, names: list[str]) -> list[Push]:
    """Return what moved a label of one row; ``before`` and ``now`` are log-odds (N,) without and with the answers."""
    change = chances(now) - chances(before)
    by = np.zeros(len(now))
    if label in rows.core:
        by[:] = rows.pair[np.flatnonzero(rows.core == label)[0]] * change
    else:
        by[rows.core] = rows.pair[:, label] * change[rows.core]
    order = np.argsort(-np.abs(by), kind="stable")[:_MOST_PUSHES]
    return [
        Push(int(other), names[other], float(by[other]), _because(int(known[other]), float(change[other]) > 0.0))
        for other in order
        if abs(by[other]) >= _LEAST_PUSH
    ]


def _because(known: int, likelier: bool) -> str:
    return ("no", "yes")[known] if known >= 0 else "likelier" if likelier else "less likely"


def model_reason(before: float, now: float, moved: list[Push]) -> Reason:
    """Put it into words.

    Examples
    --------
    >>> model_reason(0.2, 0.61, [Push(3, "beach", 1.9, "yes"), Push(5, "street", -0.2, "likelier")]).text
    '61% likely, 20% before the answers: more because of beach (yes), less because of street (likelier)'
    """
    text = f"{now:.0%} likely"
    if f"{before:.0%}" != f"{now:.0%}":
        text = f"{text}, {before:.0%} before the answers"
    more, less = ([f"{push.name} ({push.because})" for push in moved if push.by * sign > 0] for sign in (1, -1))
    parts = [f"{word} because of {', '.join(found)}" for word, found in (("more", more), ("less", less)) if found]
    return Reason(": ".join([text, *([", ".join(parts)] if parts else [])]), before, tuple(moved))
