"""When to stop, against enumeration, against a rule played again, and over many draws of rows."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from scipy.special import logsumexp
from tests.cstar.inference.test_any_size import chance_of, every_set, possible
from tests.cstar.inference.test_best_set_exact import set_scores

from slatewise import CStarRanker, datasets
from slatewise.cstar.answers import set_log_odds
from slatewise.labeling import (
    GivenLogOdds,
    GivenScores,
    LabelRows,
    MarginRule,
    MostInformation,
    MostProbable,
    Noisy,
    RandomQuestion,
    Situation,
    StoppingRule,
    Unsure,
    calibrate_stopping,
    next_questions,
    simulate,
    simulate_stopping,
)

N, ROWS = 7, 30
SETS = every_set(N)


class Star:
    """A c-star whose scores are X."""

    needs_count = False
    label_margins = staticmethod(set_log_odds)

    def __init__(self, seed: int, n_labels: int = N, spread: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        self.core_ = np.sort(rng.choice(n_labels, 2, replace=False))
        self.pair_ = spread * rng.normal(size=(2, n_labels))
        self.pair_[:, self.core_] = 0.0
        self.pair_[0, self.core_[1]] = self.pair_[1, self.core_[0]] = rng.normal()

    def label_scores(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X, dtype=np.float64)

    def draw(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Sets as likely as the model says."""
        sets = every_set(X.shape[1])
        scores = set_scores(X, self.pair_, self.core_, sets)
        return sets[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]


def situations(seed: int) -> tuple[Star, LabelRows, np.ndarray, np.ndarray, np.ndarray]:
    """Rows with answers, some labels that nobody knew, and how likely each set is."""
    rng, model = np.random.default_rng(seed), Star(seed)
    rows = LabelRows.of(model, rng.normal(-1.0, 1.5, size=(ROWS, N)), None)
    answered = rng.random((ROWS, N)) < rng.random((ROWS, 1))
    known = np.where(answered & (rng.random((ROWS, N)) < 0.8), rng.integers(0, 2, (ROWS, N)), -1).astype(np.int8)
    chance = chance_of(possible(rows.scores, rows.pair, rows.core, known, SETS))
    return model, rows, answered, known, chance


@pytest.mark.parametrize("propose", [None, 0.5, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_shown_hidden_and_how_likely_nothing_is_missed(seed: int, propose: float | None) -> None:
    _, rows, answered, known, chance = situations(seed)
    seen = StoppingRule(0.9, propose).look(rows, known, answered)
    inside = chance @ SETS
    proposed = ~answered & (inside >= (2.0 if propose is None else propose))
    np.testing.assert_array_equal(seen.shown, (known == 1) | proposed)
    np.testing.assert_array_equal(seen.hidden, ~answered & ~proposed)
    none = (chance * (seen.hidden @ SETS.T == 0)).sum(axis=1)
    np.testing.assert_allclose(seen.chance, none, rtol=1e-11)
    np.testing.assert_array_equal(seen.stop, (none > 0.9) | ~seen.hidden.any(axis=1))


@pytest.mark.parametrize("costs", [None, np.linspace(1.0, 3.0, N)])
@pytest.mark.parametrize("seed", range(5))
def test_the_most_probable_label_takes_most_doubt_off_per_cost(seed: int, costs: np.ndarray | None) -> None:
    _, rows, answered, known, chance = situations(seed)
    hidden = ~answered
    none = hidden @ SETS.T == 0
    question = next_questions(rows, known, answered, StoppingRule(threshold=1.0), MostProbable(costs))
    for row in range(ROWS):
        gains = {}
        for label in np.flatnonzero(hidden[row]):
            out = SETS[:, label] == 0
            before, after = (chance[row] @ none[row], chance[row] @ none[row] / (chance[row] @ out))
            gains[label] = np.log(after / before) / (1.0 if costs is None else costs[label])
        if gains:
            assert gains[question[row]] == pytest.approx(max(gains.values()))
        else:
            assert question[row] == -1


def test_information_per_cost() -> None:
    _, rows, answered, known, chance = situations(0)
    margins, askable, rng = rows.margins(known), ~answered, np.random.default_rng(0)
    situation = Situation(rows, known, margins, askable & (known < 0))
    np.testing.assert_array_equal(MostInformation().ask(situation, rng), MarginRule().ask(situation, rng))
    costs = np.linspace(0.2, 5.0, N)
    inside = chance @ SETS
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nan_to_num(inside * np.log(inside)) - np.nan_to_num((1 - inside) * np.log(1 - inside))
    best = np.where(situation.askable, entropy / costs, -1.0)
    expected = np.where(situation.askable.any(axis=1), best.argmax(axis=1), -1)
    np.testing.assert_array_equal(MostInformation(costs).ask(situation, rng), expected)


@pytest.mark.parametrize("propose", [None, 0.5])
@pytest.mark.parametrize("policy", [None, MarginRule()], ids=["most probable", "margin rule"])
def test_the_threshold_is_the_smallest_that_keeps_the_promise_on_its_rows(propose, policy) -> None:
    model, rng = Star(1), np.random.default_rng(1)
    X = rng.normal(-1.0, 1.5, size=(150, N))
    Y = model.draw(X, rng)
    rule = calibrate_stopping(model, 2.0 * X, Y, 0.9, policy, propose)
    assert rule.n_rows == 150

    def kept(threshold: float) -> bool:
        played = simulate_stopping(model, 2.0 * X, Y, StoppingRule(0.9, propose, threshold), policy)
        return (played.missed > 0).sum() + 1 <= 0.1 * (played.stopped.sum() + 1)

    assert kept(rule.threshold)
    if propose is None:  # a label with an answer is never missed again, so that the number falls with the threshold
        assert not kept(np.nextafter(rule.threshold, 0.0))


def drawn(seed: int, n_rows: int, scale: float) -> tuple[Star, np.ndarray, np.ndarray]:
    """Rows of a model, and the model with scores that are so much too sure."""
    model, rng = Star(seed), np.random.default_rng(seed)
    X = rng.normal(-2.0, 1.5, size=(n_rows, N))
    return model, scale * X, model.draw(X, rng)


@pytest.mark.filterwarnings("ignore:too few of 50 rows")
@pytest.mark.parametrize(("scale", "propose"), [(0.5, None), (1.0, None), (2.0, None), (2.0, 0.5)])
def test_the_promise_is_kept_whatever_the_model_is_worth(scale: float, propose: float | None) -> None:
    """Over 40 draws of 50 rows to calibrate on; a model that is twice as sure as it should be breaks it by itself."""
    model, X, Y = drawn(2, 4000, scale)
    missed, stopped = np.empty(40), np.empty(40)
    for draw, first in enumerate(range(0, 4000, 100)):
        at, new = slice(first, first + 50), slice(first + 50, first + 100)
        rule = calibrate_stopping(model, X[at], Y[at], 0.9, propose=propose)
        result = simulate_stopping(model, X[new], Y[new], rule)
        missed[draw], stopped[draw] = (result.missed > 0).sum(), result.stopped.sum()
    error = np.std(missed - 0.1 * stopped) * np.sqrt(40) / stopped.sum()
    assert missed.sum() / stopped.sum() < 0.1 + 2.0 * error
    assert missed.sum() / stopped.sum() > 0.03
    assert stopped.mean() > 25  # it is not kept by client all
    by_itself = (simulate_stopping(model, X, Y, StoppingRule(0.9, propose)).missed > 0).mean()
    assert by_itself > 0.12 if scale > 1.0 else by_itself < 0.1


@pytest.mark.filterwarnings("ignore:too few of 50 rows")
def test_assurance_keeps_the_promise_for_most_draws() -> None:
    """60 draws of 50 rows, and what others then miss of a model that is too sure."""
    model, X, Y = drawn(1, 4000, 1.5)
    others = slice(3000, None)
    grid = np.append(np.linspace(0.6, 0.99, 30), 1.0)
    played = [simulate_stopping(model, X[others], Y[others], StoppingRule(0.9, None, threshold)) for threshold in grid]
    share = np.array([(one.missed[one.stopped] > 0).mean() if one.stopped.any() else 0.0 for one in played])
    broken = {None: 0, 0.9: 0}
    for first in range(0, 3000, 50):
        for assurance in broken:
            rows = slice(first, first + 50)
            rule = calibrate_stopping(model, X[rows], Y[rows], 0.9, assurance=assurance)
            broken[assurance] += np.interp(rule.threshold, grid, share) > 0.1
    assert 15 <= broken[None] <= 36
    assert broken[0.9] <= 9


def test_rows_with_all_questions_make_up_for_nothing() -> None:
    """Half of the rows can hardly be stopped; of the others, which stop at once, 1 in 20 has a label."""
    X = np.tile([[-3.0, -3.0], [3.0, 3.0]], (200, 1))
    Y = np.tile([[0, 0], [1, 1]], (200, 1))
    Y[::40, 0] = 1
    rule = calibrate_stopping(GivenLogOdds(2), X, Y, 0.94)
    assert 0.0 < rule.threshold < 0.91
    at_once = simulate_stopping(GivenLogOdds(2), X, Y, rule)
    assert (at_once.missed[at_once.stopped] > 0).mean() <= 0.06
    Y[::20, 0] = 1
    rule = calibrate_stopping(GivenLogOdds(2), X, Y, 0.94)  # 10 of 200 rows: of all 400 they would be few enough
    assert (simulate_stopping(GivenLogOdds(2), X, Y, rule).missed == 0).all()


def test_where_hardly_any_row_can_be_stopped_none_is_and_a_warning_says_so() -> None:
    X, Y = np.full((30, 2), 5.0), np.ones((30, 2))
    with pytest.warns(UserWarning, match="too few of 30 rows can be stopped early"):
        rule = calibrate_stopping(GivenLogOdds(2), X, Y)
    assert rule.threshold == 1.0
    assert (simulate_stopping(GivenLogOdds(2), X, Y, rule).questions == 2).all()


def test_scenes_end_sooner_with_a_c_star_than_with_its_single_labels() -> None:
    scenes = datasets.make_label_scenes(1200, n_labels=12, random_state=3)
    fit, calibrating, new = slice(0, 500), slice(500, 800), slice(800, None)
    ranker = CStarRanker(core=4, C=1.0, random_state=0).fit(scenes.X[fit], scenes.Y[fit])
    found = {}
    for name, model, rows in (
        ("star", ranker, scenes.X),
        ("single", GivenLogOdds(12), ranker.label_scores(scenes.X)),
    ):
        rule = calibrate_stopping(model, rows[calibrating], scenes.Y[calibrating], 0.9)
        assert StoppingRule(**json.loads(json.dumps(asdict(rule)))) == rule
        result = simulate_stopping(model, rows[new], scenes.Y[new], rule)
        assert result.summary()["missed"] < 0.16
        found[name] = result
    assert found["star"].questions.mean() < found["single"].questions.mean()
    again = simulate_stopping(ranker, scenes.X[new], scenes.Y[new], StoppingRule(threshold=1.0))
    assert (again.questions == 12).all()
    assert not again.stopped.any()
    assert again.missed.sum() == again.wrong.sum() == 0
    np.testing.assert_array_equal(again.shown, scenes.Y[new] > 0)


def test_questions_and_counts_agree_with_each_other() -> None:
    model, rng = Star(3), np.random.default_rng(3)
    X = rng.normal(-1.0, 1.5, size=(80, N))
    Y = model.draw(X, rng)
    result = simulate_stopping(model, X, Y, StoppingRule(0.8, 0.6), RandomQuestion(), Noisy(0.1, Unsure(0.3)), None, 5)
    for row in range(80):
        labels = result.labels[row][result.labels[row] >= 0]
        assert len(set(labels)) == len(labels) == result.questions[row]
        assert (result.labels[row][len(labels) :] == -1).all()
        assert (result.known[row] >= 0).sum() == len(labels) - result.not_known[row]
        neither = np.isin(np.arange(N), labels, invert=True) & ~result.shown[row]
        assert result.missed[row] == (neither & (Y[row] == 1)).sum()
        assert result.wrong[row] == (result.shown[row] & (Y[row] == 0)).sum()
    costs = np.arange(1.0, N + 1.0)
    np.testing.assert_array_equal(result.cost(), result.questions)
    assert result.cost(costs)[0] == costs[result.labels[0][result.labels[0] >= 0]].sum()
    assert 0.0 < result.summary()["not known"] < result.summary()["mean questions"]
    again = simulate_stopping(model, X, Y, StoppingRule(0.8, 0.6), RandomQuestion(), Noisy(0.1, Unsure(0.3)), None, 5)
    np.testing.assert_array_equal(result.labels, again.labels)


def test_an_annotator_who_never_knows_gets_one_question_per_label() -> None:
    X, Y = np.zeros((5, N)), np.ones((5, N))
    result = simulate_stopping(GivenLogOdds(N), X, Y, annotator=Unsure(1.0))
    assert (result.questions == N).all()
    assert (result.not_known == N).all()
    assert (result.missed == 0).all()
    assert not result.stopped.any()
    few = simulate_stopping(GivenLogOdds(N), X, Y, annotator=Unsure(1.0), most=2)
    assert (few.questions == 2).all()
    assert (few.missed == N - 2).all()
    assert not simulate_stopping(GivenLogOdds(N), X, Y, most=0).labels.size


def test_a_label_that_nobody_knew_is_open_without_a_second_question() -> None:
    rows = LabelRows.of(GivenLogOdds(3), [[1.0, 0.0, -1.0]], None)
    unknown = np.full((1, 3), -1)
    assert next_questions(rows, unknown).tolist() == [0]
    answered = np.array([[True, False, False]])
    assert next_questions(rows, unknown, answered).tolist() == [1]
    assert next_questions(rows, unknown, np.ones((1, 3), dtype=bool)).tolist() == [-1]
    seen = StoppingRule().look(rows, unknown, answered)
    assert seen.chance[0] == pytest.approx(0.5 / (1.0 + np.exp(-1.0)))


def test_dear_questions_come_last_and_cost_less_in_all() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(-3.0, 1.5, size=(200, N))
    Y = (rng.random(X.shape) < 1.0 / (1.0 + np.exp(-X))).astype(int)
    costs = np.array([8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125])
    plain, thrifty = (simulate_stopping(GivenLogOdds(N), X, Y, policy=MostProbable(c)) for c in (None, costs))
    assert thrifty.cost(costs).mean() < 0.97 * plain.cost(costs).mean()
    assert thrifty.questions.mean() > plain.questions.mean()
    assert (thrifty.missed > 0).mean() < 0.05


def test_the_same_bits_with_one_and_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rng = Star(4), np.random.default_rng(4)
    X = rng.normal(-1.0, 1.5, size=(600, N))
    Y = model.draw(X, rng)
    found = []
    for n_jobs in ("1", "2"):
        monkeypatch.setenv("SLATEWISE_THREADS", n_jobs)
        rule = calibrate_stopping(model, X, Y, propose=0.5)
        found.append((rule, simulate_stopping(model, X, Y, rule)))
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1].labels, found[1][1].labels)
    np.testing.assert_array_equal(found[0][1].chance, found[1][1].chance)


def test_rows_without_labels_need_no_question() -> None:
    X, Y = np.full((30, 3), -1.0), np.zeros((30, 3))
    rule = calibrate_stopping(GivenLogOdds(3), X, Y)
    assert rule.threshold == 0.0
    assert (simulate_stopping(GivenLogOdds(3), X, Y, rule).questions == 0).all()
    assert next_questions(LabelRows.of(GivenLogOdds(3), X[:1], None), [[-1, -1, -1]], rule=rule).tolist() == [-1]


def test_what_a_rule_and_a_calibration_refuse() -> None:
    X, Y = np.zeros((19, 2)), np.tile([0, 1], (19, 1))
    for name, value in (("confidence", 1.0), ("confidence", 0.0), ("propose", 1.0), ("threshold", 1.5)):
        with pytest.raises(ValueError, match=f"{name}: expected .* found {value}"):
            StoppingRule(**{name: value})
    assert calibrate_stopping(GivenLogOdds(2), X, 0 * Y).n_rows == 19
    with pytest.raises(ValueError, match=r"X: expected at least 19 rows for a confidence of 0.95, found 18"):
        calibrate_stopping(GivenLogOdds(2), X[1:], Y[1:])
    with pytest.raises(ValueError, match=r"at least 45 rows for a confidence of 0.95 and an assurance of 0.9"):
        calibrate_stopping(GivenLogOdds(2), X, Y, assurance=0.9)
    with pytest.raises(ValueError, match="assurance: expected None or a probability between 0 and 1, found 2"):
        calibrate_stopping(GivenLogOdds(2), X, Y, assurance=2)
    for play in (calibrate_stopping, simulate_stopping):
        with pytest.raises(ValueError, match=r"ranker: expected one with probabilities of sets .* found GivenScores"):
            play(GivenScores(2), X, Y)
        with pytest.raises(ValueError, match="y: expected 0 and 1"):
            play(GivenLogOdds(2), X, np.where(Y > 0, -1, 0))
    rows = LabelRows.of(GivenLogOdds(2), X, None)
    with pytest.raises(ValueError, match=r"answered: expected True and False in shape \(19, 2\)"):
        StoppingRule().stop(rows, np.full((19, 2), -1), np.zeros((19, 2)))
    with pytest.raises(ValueError, match="known: expected -1, 0 or 1, found 2"):
        StoppingRule().stop(rows, np.full((19, 2), 2))
    with pytest.raises(ValueError, match="k: expected None, for probabilities of sets of any size"):
        StoppingRule().stop(LabelRows.of(GivenLogOdds(2), X, 1), np.full((19, 2), -1))
    with pytest.raises(ValueError, match="most: expected a whole number >= 0, found -1"):
        simulate_stopping(GivenLogOdds(2), X, Y, most=-1)
    for costs, found in (([1.0], r"shape \(2,\), found \(1,\)"), ([1.0, 0.0], "> 0, found 0"), ([1.0, np.nan], "nan")):
        with pytest.raises(ValueError, match=f"costs: expected .*{found}"):
            simulate_stopping(GivenLogOdds(2), X, Y, policy=MostProbable(costs))


def test_simulate_takes_the_new_policies_without_told_k() -> None:
    scenes = datasets.make_label_scenes(100, n_labels=6, random_state=0)
    scores = scenes.Y + np.random.default_rng(0).normal(size=scenes.Y.shape) - 0.5
    for policy in (MostProbable(), MostInformation(np.arange(1.0, 7.0))):
        result = simulate(GivenLogOdds(6), scores, scenes.Y, policy, Unsure(0.2), (0, 3), random_state=0)
        assert result.mean()[3] > result.mean()[0]


def test_log_partitions_of_all_labels_answered() -> None:
    _, rows, _, _, _ = situations(9)
    known = np.random.default_rng(0).integers(0, 2, (ROWS, N)).astype(np.int8)
    assert (StoppingRule().look(rows, known).chance == 1.0).all()
    own = np.diagonal(set_scores(rows.scores, rows.pair, rows.core, known.astype(float)))
    everything = logsumexp(set_scores(rows.scores, rows.pair, rows.core, SETS), axis=1)
    unknown = np.where(known == 1, 1, -1).astype(np.int8)
    seen = StoppingRule().look(rows, unknown)
    agreeing = logsumexp(possible(rows.scores, rows.pair, rows.core, unknown, SETS), axis=1)
    np.testing.assert_allclose(seen.chance, np.exp(own - agreeing), rtol=1e-11)
    assert (agreeing <= everything + 1e-12).all()
