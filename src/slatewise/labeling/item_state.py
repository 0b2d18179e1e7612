"""One item as one person sees it: the answers so far, the next question and why, the model's list, how sure it is.

The log-odds of a label that is not in the core are ``s_i + sum over core labels c of G_ci t_c``. When answers change
how likely the core labels are, they move by about

    sum over c of G_ci (P(c | answers) - P(c)) ,

exactly if the answers decide the core; a core label is moved by all others in the same way. Each term is a *push*, and
the strongest pushes are the reason that is shown with a question.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slatewise.core.arrays import Bools, Bytes, Floats, Ints
from slatewise.cstar.inference.any_size import chances
from slatewise.labeling.labeling_state import ProjectSnapshot
from slatewise.labeling.plan import QUESTIONS
from slatewise.labeling.questions.policies import MostProbable, Situation
from slatewise.labeling.questions.rows import LabelRows
from slatewise.labeling.scored_items import Basis
from slatewise.labeling.store.known_labels import HOWS, Votes
from slatewise.labeling.store.records import How

Word: TypeAlias = Literal["yes", "no", "don't know"]
WORDS: dict[str, int] = {"yes": 1, "no": 0, "don't know": -1}
_WORD_OF: dict[int, Word] = {1: "yes", 0: "no", -1: "don't know"}
_WITHOUT_MODEL = "Without the model, every label in turn: so it can be measured."
_MOST_PUSHES = 3
_LEAST_PUSH = 0.05


@dataclass(frozen=True)
class Push:
    """How another label changed the log-odds of the label of a question."""

    label: int
    name: str
    by: float
    because: str
    """"yes" or "no" if that is its answer; "likelier" or "less likely" if the model infers that."""


@dataclass(frozen=True)
class Reason:
    """Why a question is the next one."""

    text: str
    """For people."""
    before: float | None = None
    """How likely the label was before the first answer; None without a model."""
    pushes: tuple[Push, ...] = ()
    """The strongest first."""


@dataclass(frozen=True)
class Question:
    """A label to ask for."""

    label: int
    name: str
    probability: float | None
    """That it is relevant, given the answers; None without the model."""
    reason: Reason


@dataclass(frozen=True)
class ListedLabel:
    """A label of the list."""

    label: int
    name: str
    probability: float | None
    answer: Word | None
    """The answer of the person; None: there is none."""


@dataclass(frozen=True, eq=False)
class ItemView:
    """An item as it stands for one person; made anew after every act."""

    item: int
    question: Question | None
    """None if nothing is left to ask."""
    listed: tuple[ListedLabel, ...]
    """Labels with a yes, then, with a model, the most probable labels without an answer."""
    answered: tuple[ListedLabel, ...]
    """All labels that the person answered, by number."""
    order: Ints
    """(labels,) all labels: those with a yes first, then by probability, those with a no last."""
    probability: Floats
    """(labels,) that they are relevant, given the answers; NaN without the model."""
    n_questions: int
    """How many questions the person answered."""
    labels_without_model: int
    """How many questions there would be without a model: one per label."""
    chance: float
    """That no label without an answer is relevant; NaN without a model."""
    enough: bool
    """Whether ``chance`` is as large as the plan wants, or nothing is left to ask."""
    calibrated: bool
    """Whether ``enough`` keeps its promise; else it is what the model believes."""
    for_calibration: bool
    """Whether the item is labeled without the model, so that the model can be measured on it."""
    basis: Basis
    version: int | None
    """The version of the model."""
    notes: tuple[str, ...]
    """What the person should know: that there is no model yet, that somebody else has the item, and so on."""


@dataclass(eq=False)
class ItemState:
    """What is known of an item to the person who has it."""

    item: int
    for_calibration: bool
    """Whether it is labeled without the model."""
    values: Bytes
    """(labels,) the answers of the person."""
    how: NDArray[np.int8]
    """(labels,) how the person's answers came about, as in :attr:`Votes.how`; -1: there is none."""
    others: Bytes
    """(labels,) the answers of others, if the person may know them."""
    from_list: dict[int, float] = field(default_factory=dict[int, float])
    """Labels that the person volunteered when the list showed them, and how likely they were."""

    @classmethod
    def of(cls, item: int, annotator: int, votes: Votes, snapshot: ProjectSnapshot) -> ItemState:
        """Read what is known of an item."""
        n_labels, own = len(snapshot.names), votes.annotator == annotator
        values, how = np.full(n_labels, -1, dtype=np.int8), np.full(n_labels, -1, dtype=np.int8)
        values[votes.label[own]], how[votes.label[own]] = votes.value[own], votes.how[own]
        others = np.full(n_labels, -1, dtype=np.int8)
        if snapshot.plan.overlap == 1 and not own.all():
            columns = {name: column[~own] for name, column in vars(votes).items()}
            columns["item"] = np.zeros_like(columns["item"])
            others = Votes(**columns).known((1, n_labels)).values[0]
        return cls(item, bool(snapshot.calibration_set.members[item]), values, how, others)

    @property
    def known(self) -> Bytes:
        """(labels,)."""
        return np.where(self.values >= 0, self.values, self.others)

    @property
    def answered(self) -> Bools:
        """(labels,) labels that need no question; "don't know" is an answer."""
        return (self.how >= 0) | (self.others >= 0)

    def note(self, label: int, value: int, how: How) -> None:
        """Note an answer of the person's."""
        self.values[label], self.how[label] = value, HOWS.index(how)

    def view(self, snapshot: ProjectSnapshot, notes: tuple[str, ...]) -> ItemView:
        """Return what to show to the person."""
        scored, known, answered = snapshot.scored, self.known, self.answered
        left = ~answered
        order, probability = np.argsort(-known, kind="stable"), np.full(len(known), np.nan)
        question, chance, stop = None, np.nan, False
        if self.for_calibration:
            if left.any():
                label = int(np.argmax(left))
                question = Question(label, snapshot.names[label], None, Reason(_WITHOUT_MODEL))
        else:
            is_model = scored.basis != "frequency"
            rows = scored.rows.take(np.array([self.item]))
            seen = scored.rule.look(rows, known[None], answered[None])
            log_odds = seen.log_odds[0]
            left &= np.isfinite(log_odds)
            order, probability = np.argsort(-log_odds, kind="stable"), chances(log_odds)
            if is_model:
                chance, stop = float(seen.chance[0]), bool(seen.stop[0])
            policy = QUESTIONS[snapshot.plan.policy] if is_model else MostProbable()
            rng = np.random.default_rng([snapshot.plan.seed, self.item, int(answered.sum())])
            label = int(policy.ask(Situation(rows, known[None], seen.log_odds, left[None]), rng)[0])
            if label >= 0:
                reason = self._reason(snapshot, rows, log_odds, label) if is_model else _found_so_far(snapshot, label)
                question = Question(label, snapshot.names[label], float(probability[label]), reason)
        return ItemView(
            item=self.item,
            question=question,
            listed=self._listed(snapshot, order, probability),
            answered=tuple(
                self._label(snapshot, label, probability, _WORD_OF[int(self.values[label])])
                for label in np.flatnonzero(self.how >= 0)
            ),
            order=order,
            probability=probability,
            n_questions=int((self.how == HOWS.index("question")).sum()),
            labels_without_model=len(known),
            chance=chance,
            enough=stop or not left.any(),
            calibrated=not self.for_calibration and scored.rule.n_rows > 0,
            for_calibration=self.for_calibration,
            basis=scored.basis,
            version=None if self.for_calibration else scored.version,
            notes=notes,
        )

    def _listed(self, snapshot: ProjectSnapshot, order: Ints, probability: Floats) -> tuple[ListedLabel, ...]:
        """Return the labels with a yes and, with a model, the most probable ones without an answer."""
        most = 0 if self.for_calibration else snapshot.plan.list_length
        relevant, likely = order[self.known[order] == 1], order[~self.answered[order]][:most]
        return (
            *(self._label(snapshot, label, probability, "yes") for label in relevant),
            *(self._label(snapshot, label, probability, None) for label in likely),
        )

    def _label(
        self, snapshot: ProjectSnapshot, label: np.int64, probability: Floats, answer: Word | None
    ) -> ListedLabel:
        chance = None if self.for_calibration else float(probability[label])
        return ListedLabel(int(label), snapshot.names[label], chance, answer)

    def _reason(self, snapshot: ProjectSnapshot, rows: LabelRows, now: Floats, label: int) -> Reason:
        """Return how likely a label was and is, and what moved it."""
        before = rows.margins(np.full((1, len(now)), -1, dtype=np.int8))[0]
        moved = pushes(rows, label, before, now, self.known, snapshot.names)
        return model_reason(float(chances(before)[label]), float(chances(now)[label]), moved)


def pushes(rows: LabelRows, label: int, before: Floats, now: Floats, known: Bytes, names: list[str]) -> list[Push]:
    """Return what moved a label of one row; ``before`` and ``now`` are log-odds (N,) without and with the answers."""
    change = chances(now) - chances(before)
    by = np.zeros(len(now))
    if label in rows.core:
        by[:] = rows.pair[np.flatnonzero(rows.core == label)[0]] * change
    else:
        by[rows.core] = rows.pair[:, label] * change[rows.core]
    found: list[Push] = []
    order: list[int] = np.argsort(-np.abs(by), kind="stable")[:_MOST_PUSHES].tolist()
    for other in order:
        if abs(by[other]) >= _LEAST_PUSH:
            because = "likelier" if change[other] > 0.0 else "less likely"
            if known[other] >= 0:
                because = _WORD_OF[int(known[other])]
            found.append(Push(other, names[other], float(by[other]), because))
    return found


def model_reason(before: float, now: float, moved: list[Push]) -> Reason:
    """Return the reason for a question of the model in words.

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


def _found_so_far(snapshot: ProjectSnapshot, label: int) -> Reason:
    values = snapshot.known.values[:, label]
    found, known = int((values == 1).sum()), int((values >= 0).sum())
    return Reason(
        f"No model yet: found in {found} of {known} items so far" if known else "No model yet, no answers yet"
    )
