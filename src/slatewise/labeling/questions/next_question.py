"""What to do next with rows that people are labeling: which questions to ask, and in which rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from slatewise.core.arrays import Ints
from slatewise.core.checks import whole_number
from slatewise.labeling.questions.policies import MostGain, MostProbable, QuestionPolicy, RowPolicy, Situation
from slatewise.labeling.questions.rows import LabelRows
from slatewise.labeling.questions.stopping import StoppingRule


def next_questions(
    rows: LabelRows,
    known: ArrayLike,
    answered: ArrayLike | None = None,
    rule: StoppingRule | None = None,
    policy: QuestionPolicy | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Ints:
    """Return the label to ask next in each row, -1 if the row may stop.

    Parameters
    ----------
    rows
        ``LabelRows.of(ranker, X, None)``, made once: scores of labels do not change with answers.
    known
        (n, N): 1 yes, 0 no, -1 unknown.
    answered
        (n, N) True for labels with an answer, "don't know" included: there is no further question about them. Default:
        those that are known.
    rule
        When to stop. Default: :class:`StoppingRule` with its defaults, not calibrated.
    policy
        Which label to ask next. Default: :class:`MostProbable`.
    random_state
        For policies that draw.

    Examples
    --------
    >>> from slatewise.labeling.questions.rows import GivenLogOdds
    >>> rows = LabelRows.of(GivenLogOdds(3), [[2.0, -1.0, -6.0], [-5.0, -5.0, -5.0]], k=None)
    >>> next_questions(rows, [[1, -1, -1], [-1, -1, -1]])
    array([ 1, -1])
    """
    situation = _situation(rows, known, answered, rule or StoppingRule())
    return (policy or MostProbable()).ask(situation, np.random.default_rng(random_state))


def next_rows(
    rows: LabelRows,
    known: ArrayLike,
    n: int = 1,
    answered: ArrayLike | None = None,
    rule: StoppingRule | None = None,
    policy: RowPolicy | None = None,
) -> Ints:
    """Return the numbers of the n rows to label next, best first; fewer if the other rows may stop.

    The other parameters are those of :func:`next_questions`.

    Parameters
    ----------
    n
        How many rows.
    policy
        Which rows are best. Default: :class:`MostGain` under the rule.

    Examples
    --------
    The second row may stop already. The third takes as many questions as the first and gains more.

    >>> from slatewise.labeling.questions.rows import GivenLogOdds
    >>> rows = LabelRows.of(GivenLogOdds(2), [[2.0, -6.0], [-5.0, -5.0], [0.5, -6.0]], k=None)
    >>> next_rows(rows, np.full((3, 2), -1), n=3)
    array([2, 0])
    """
    rule = rule or StoppingRule()
    situation = _situation(rows, known, answered, rule)
    left = np.flatnonzero(situation.askable.any(axis=1))
    worth = (policy or MostGain(rule)).worth(situation.take(left))
    return left[np.argsort(-worth, kind="stable")][: whole_number("n", n, 1)]


def _situation(rows: LabelRows, known: ArrayLike, answered: ArrayLike | None, rule: StoppingRule) -> Situation:
    """Return the input of policies: no label of a row that may stop is askable."""
    seen = rule.look(rows, known, answered)
    answers = np.atleast_2d(np.asarray(known)).astype(np.int8)
    return Situation(rows, answers, seen.log_odds, seen.hidden & ~seen.stop[:, None])
