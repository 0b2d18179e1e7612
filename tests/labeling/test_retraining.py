"""New versions of the model: what they learn from, what failing and killed trainers leave, what versions are worth."""

import os
import signal

import numpy as np
import pytest
from tests.labeling.scenes import NAMES, SCENES, X, Y, make_project, ranker

import slatewise
from slatewise import CStarRanker
from slatewise.errors import ProjectError
from slatewise.labeling import (
    GivenLogOdds,
    Item,
    ItemData,
    LabelingState,
    Plan,
    Project,
    Quality,
    Trainer,
    keep_model,
    qualities,
    retrain,
)
from slatewise.labeling.calibration_set import CalibrationSet, calibrated_rule, measure
from slatewise.labeling.questions.rows import LabelRows
from slatewise.labeling.questions.stopping_simulation import simulate_stopping
from slatewise.labeling.store.records import Act, Given


def answer_all(project, who, items, labels=range(8), how="question"):
    ann = project.people.number(who)
    acts = [
        Act("answer", int(item), ann, (Given(label, int(Y[item, label]), how),)) for item in items for label in labels
    ]
    project.record(acts)


@pytest.fixture
def project(tmp_path):
    with make_project(tmp_path / "scenes.db") as made:
        ItemData.of(made, X).attach(made)
        yield made


@pytest.mark.filterwarnings("ignore:y. .* labels are not known")
def test_a_version_learns_from_answers_to_questions_only(project):
    Plan(share=0.3, seed=1).keep(project)
    inside = CalibrationSet.of_ids([item.id for item in project.items.all()], 1, 0.3).members
    answer_all(project, "Ann", range(20), range(6))
    answer_all(project, "Ann", range(20), [6], how="volunteered")
    ann = project.people.number("Ann")
    project.answer(3, 7, -1, ann)
    project.done(3, ann, shown=[6])  # which confirms it
    trained = retrain(project)
    rows = np.flatnonzero(~inside[:20])
    kept = np.full((20, 8), -1.0)
    kept[:, :6] = Y[:20, :6]
    kept[3, 6] = Y[3, 6]
    expected = CStarRanker(random_state=1).fit(X[rows], kept[rows][:, :7], label_names=NAMES[:7])
    version = project.models.current()
    model = slatewise.load(project.path.parent / version.path)
    assert (trained.version, trained.n_items) == (version.number, len(rows))
    assert np.array_equal(model.decision_function(X), expected.decision_function(X))
    assert model.label_names_.tolist() == NAMES[:7]
    assert version.last_act == project.last_act()
    state = LabelingState(project)
    assert state.snapshot.scored.rows.scores.shape == (24, 8)
    never = state.snapshot.scored.rows.scores[:, 7]
    assert (never == never[0]).all()
    assert never[0] < 0  # rare, as long as nobody answered


@pytest.mark.filterwarnings("ignore:y. .* labels are not known")
def test_scores_from_elsewhere_are_adjusted(tmp_path):
    with make_project(tmp_path / "scenes.db") as project:
        log_odds = ranker().decision_function(X)
        ItemData.of(project, log_odds, "log-odds").attach(project)
        answer_all(project, "Ann", range(20), range(5))
        retrain(project)
        model = slatewise.load(project.path.parent / project.models.current().path)
        expected = CStarRanker("precomputed", random_state=0)
        expected.fit(log_odds[:20, :5], Y[:20, :5], label_names=NAMES[:5])
        assert np.array_equal(model.decision_function(log_odds[:, :5]), expected.decision_function(log_odds[:, :5]))
        scored = LabelingState(project).snapshot.scored.rows.scores
        assert np.array_equal(scored[:, :5], expected.label_scores(log_odds[:, :5]))
        assert np.array_equal(scored[:, 5:], log_odds[:, 5:])  # nobody answered for these: as given


def test_versions_are_measured_on_the_share_that_none_has_seen(project):
    Plan(share=0.5, confidence=0.5).keep(project)
    inside = np.flatnonzero(CalibrationSet.of_ids([item.id for item in project.items.all()], 0, 0.5).members)
    assert len(inside) > 4
    first = keep_model(project, ranker(), note="trained elsewhere")
    answer_all(project, "Ann", range(24))
    second = retrain(project).version
    found = qualities(project)
    assert [quality.version for quality in found] == [first, second]
    assert {quality.n_items for quality in found} == {len(inside)}
    for quality in found:
        model = slatewise.load(project.path.parent / project.models.all()[quality.version - 1].path)
        assert quality.break_even == pytest.approx(model.score(X[inside], Y[inside], count_known=False))
        assert 0.0 <= quality.missed <= 1.0
    project.models.use(first)
    assert LabelingState(project).snapshot.scored.version == first


def test_what_stopped_rows_miss_is_measured_on_the_other_half():
    plan = Plan(confidence=0.7, policy="most probable")
    rng = np.random.default_rng(0)
    log_odds = rng.normal(-1.0, 2.0, size=(30, 8))
    truth = (rng.random(log_odds.shape) < 1 / (1 + np.exp(-log_odds))).astype(np.int8)
    rows = LabelRows.of(GivenLogOdds(8), log_odds, None)
    quality = measure(rows, truth, plan, 4)
    stopped, missed, questions = [], [], []
    for here, there in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
        rule = calibrated_rule(LabelRows.of(GivenLogOdds(8), log_odds[there], None), truth[there], plan)
        from slatewise.labeling import MostProbable

        played = simulate_stopping(GivenLogOdds(8), log_odds[here], truth[here], rule, MostProbable())
        stopped += played.stopped.tolist()
        missed += (played.missed > 0).tolist()
        questions += played.questions.tolist()
    assert quality.stopped == pytest.approx(np.mean(stopped))
    assert quality.missed == pytest.approx(np.mean(np.array(missed)[stopped]))
    assert quality.questions == pytest.approx(np.mean(questions))
    assert Quality.from_json(quality.as_json()) == quality


def test_too_few_answers_are_an_error(project):
    with pytest.raises(ProjectError, match="expected answers for at least 2 labels, found 0"):
        retrain(project)
    assert project.models.current() is None


def test_without_features_a_model_learns_which_labels_come_together(tmp_path):
    """Beside plain counts: of items where the first label is there, and where it is not."""
    together = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]] * 15, dtype=np.int8)
    items = [Item(f"text {number}", "text", "A scene.") for number in range(len(together) + 1)]
    with Project.create(tmp_path / "bare.db", ["sea", "sand", "car"], items) as project:
        Plan(share=0.0).keep(project)
        ann = project.people.number("Ann")
        given = [tuple(Given(label, int(value)) for label, value in enumerate(row)) for row in together]
        project.record(Act("answer", item, ann, one) for item, one in enumerate(given))
        assert LabelingState(project).snapshot.scored.basis == "frequency"
        retrain(project)
        state = LabelingState(project)
        assert (state.snapshot.scored.basis, state.snapshot.scored.version) == ("model", 1)
        scores = state.snapshot.scored.rows.scores
        assert np.allclose(scores, scores[0], atol=1e-4)  # no item is seen as another
        session = state.session("Bob")
        session.open(len(together))
        before = session.view.probability
        assert before == pytest.approx(together.mean(axis=0), abs=0.1)
        after = session.answer("sea", "yes").probability
        assert after[1] > 0.8
        assert after[2] < 0.15
        session.undo()
        assert session.answer("sea", "no").probability[1] < 0.2


def test_a_process_of_its_own_trains_and_people_go_on(project):
    answer_all(project, "Ann", range(16))
    Plan(share=0.0, retrain_every=100).keep(project)
    state, trainer = LabelingState(project), Trainer(project)
    session = state.session("Bob")
    assert trainer.poll().state == "training"
    assert not trainer.start()
    session.next_item()
    assert session.view.basis == "frequency"
    status = trainer.wait()
    assert status == ("trained", "Version 1, from 16 items of which 128 labels are known.")
    state.refresh(wait=True)
    assert session.answer(session.question.label, "yes").version == 1
    assert trainer.poll().state == "trained"  # nothing is due


def test_a_killed_and_a_failing_trainer_leave_the_version_before(project):
    version = keep_model(project, ranker())
    trainer = Trainer(project)
    trainer.start()
    os.kill(trainer._process.pid, signal.SIGKILL)
    status = trainer.wait()
    assert status.state == "failed"
    assert "SIGKILL" in status.message
    trainer.start()
    status = trainer.wait()
    assert status.state == "failed"
    assert "expected answers for at least 2 labels, found 0. The version before stays in use." in status.message
    assert project.models.current().number == version
    assert [line.what for line in project.audit.all()][-2:] == ["training failed"] * 2
    assert trainer.poll().state == "failed"  # not again before there is something new


def test_two_do_not_train_at_once(project):
    from slatewise.labeling.store.leases import TrainerLock

    lock = TrainerLock(project.path)
    with pytest.raises(ProjectError, match=f"nobody trains now, found it is trained by process {os.getpid()}"):
        retrain(project)
    lock.release()


def test_rows_are_found_by_their_ids(tmp_path):
    with make_project(tmp_path / "scenes.db", 3) as project:
        data = ItemData.of(project, X[:4], ids=["other", "scene 2", "scene 0", "scene 1"])
        assert np.array_equal(data.X, X[[2, 3, 1]])
        assert data.attach(project).name == "scenes.features.npz"
        assert np.array_equal(ItemData.attached(project).X, X[[2, 3, 1]])
        turned = ItemData.of(project, SCENES.Y[:3, ::-1], "log-odds", label_names=NAMES[::-1])
        assert np.array_equal(turned.X, SCENES.Y[:3])
        turned.attach(project)
        assert ItemData.attached(project).kind == "log-odds"
        project.labels.add(["late"])
        with pytest.raises(ProjectError, match="found nothing for 1 of them, such as 'late': attach all"):
            ItemData.attached(project)
        project.settings.set("item data", {"file": "../other.npz", "kind": "features"})
        with pytest.raises(ProjectError, match="expected the name of a file beside it"):
            ItemData.attached(project)
