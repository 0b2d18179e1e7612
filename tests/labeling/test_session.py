"""A person's whole way through a project: questions, answers, undo, done, the next item."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.labeling.scenes import NAMES, X, Y, make_project, ranker

from slatewise import data
from slatewise.cstar.inference.any_size import chances
from slatewise.labeling import (
    LabelingState,
    MostProbable,
    Plan,
    Project,
    Session,
    StoppingRule,
    keep_model,
    labeling_state,
    next_rows,
    simulate,
    simulate_stopping,
)
from slatewise.labeling.plan import ORDERS, QUESTIONS
from slatewise.labeling.questions.rows import LabelRows
from slatewise.labeling.store import leases
from slatewise.labeling.store.records import Act, Given

WORDS = ("no", "yes")


@pytest.fixture
def project(tmp_path):
    with make_project(tmp_path / "scenes.db") as made:
        yield made


@pytest.fixture
def session(project):
    return Session(project, "Ann", ranker(), X)


@pytest.fixture
def clock(monkeypatch):
    seconds = {"steady": 50.0}
    monkeypatch.setattr(leases, "steady_clock", lambda: seconds["steady"])
    return seconds


def truth(item, label):
    return WORDS[Y[item, label]]


@pytest.mark.parametrize("policy", ["margin rule", "most probable"])
def test_a_truthful_person_gets_the_questions_and_lists_of_the_simulation(tmp_path, policy):
    n, most = 8, 5
    expected = simulate(ranker(), X[:n], Y[:n], QUESTIONS[policy], questions=range(most + 1))
    labels, precision = np.full((n, most), -1), np.full((n, most + 1), np.nan)
    with make_project(tmp_path / "scenes.db", n, policy=policy) as project:
        session = Session(project, "Ann", ranker(), X[:n])
        while (item := session.next_item(by="file order")) is not None:
            for count in range(most + 1):
                view, k = session.view, Y[item].sum()
                if k:
                    precision[item, count] = Y[item, view.order[:k]].sum() / k
                if count < most:
                    labels[item, count] = view.question.label
                    session.answer(view.question.label, truth(item, view.question.label))
            session.done(shown=())
        assert np.array_equal(project.known().values[np.arange(n)[:, None], labels], Y[np.arange(n)[:, None], labels])
    assert np.array_equal(labels, expected.labels)
    assert np.array_equal(precision, expected.per_list, equal_nan=True)


def test_an_item_ends_where_the_simulation_stops(tmp_path):
    n, policy, rule = 8, MostProbable(), StoppingRule(0.8)
    expected = simulate_stopping(ranker(), X[:n], Y[:n], rule, policy)
    with make_project(tmp_path / "scenes.db", n, policy="most probable", confidence=0.8) as project:
        session = Session(project, "Ann", ranker(), X[:n])
        while (item := session.next_item(by="file order")) is not None:
            while not session.view.enough:
                session.answer(session.question.label, truth(item, session.question.label))
            assert session.view.n_questions == expected.questions[item]
            assert session.view.chance == pytest.approx(expected.chance[item])
            assert (session.view.labels_without_model, session.view.calibrated) == (8, False)
            assert any("not calibrated" in note for note in session.view.notes)
            session.done()


@pytest.mark.parametrize("by", ["least sure", "most gain"])
def test_items_come_in_the_order_of_the_rows(session, by):
    from slatewise.labeling import LeastSure, MostGain

    rows, nothing = LabelRows.of(ranker(), X, None), np.full(Y.shape, -1)
    policy = {"least sure": LeastSure(), "most gain": MostGain()}[by]
    expected = next_rows(rows, nothing, 5, policy=policy)
    got = []
    for _ in range(5):
        got.append(session.next_item(by=by))
        session.skip()
    assert got == expected.tolist()


def test_the_worth_of_an_item_follows_its_answers(project):
    snapshot = LabelingState(project, ranker(), X)
    session = snapshot.session("Ann")
    first, other = session.next_item(), snapshot.session("Bob")
    for label in range(7):
        session.answer(label, truth(first, label))
    session.skip()  # somebody else may have it, with one question left
    known = np.full(Y.shape, -1)
    known[first, :7] = Y[first, :7]
    rows = LabelRows.of(ranker(), X, None)
    expected = next_rows(rows, known, 24)
    got = list(snapshot.choose(other.annotator))
    assert got[: len(expected)] == expected.tolist()
    assert got[0] != first


def test_answers_of_others_need_no_question(project):
    snapshot = LabelingState(project, ranker(), X)
    ann, bob = snapshot.session("Ann"), snapshot.session("Bob")
    item = ann.next_item()
    ann.answer(3, "yes")
    ann.answer(4, "don't know")
    ann.skip()
    assert bob.open(item)
    labels = []
    while bob.question is not None:
        labels.append(bob.question.label)
        bob.answer(labels[-1], "no")
    assert sorted(labels) == [0, 1, 2, 4, 5, 6, 7]
    assert [label.label for label in bob.view.listed] == [3]


def test_items_of_which_all_is_known_come_last(project):
    ann = project.people.number("Ann")
    project.record([Act("answer", 0, ann, tuple(Given(label, 0) for label in range(8)))])
    free = list(LabelingState(project).choose(ann, "file order"))
    assert free == [*range(1, 24), 0]


def test_people_who_overlap_do_not_see_each_others_answers(tmp_path):
    with make_project(tmp_path / "scenes.db", overlap=2) as project:
        snapshot = LabelingState(project, ranker(), X)
        ann, bob = snapshot.session("Ann"), snapshot.session("Bob")
        item = ann.next_item()
        first = ann.question
        ann.answer(first.label, "yes")
        ann.done()
        assert bob.open(item)
        assert bob.question.label == first.label
        assert not bob.view.n_questions


def test_disputes_come_first_in_the_order_of_disagreement(tmp_path):
    with make_project(tmp_path / "scenes.db", overlap=3) as project:
        ann, bob = (project.people.number(name) for name in ("Ann", "Bob"))
        project.answer(7, 0, 1, ann)
        project.answer(7, 0, 0, bob)
        surprising = int(np.argmin(ranker().predict_proba(X[9:10])[0]))
        project.answer(9, surprising, 1, ann)
        project.answer(8, surprising, 0, ann)
        cid = Session(project, "Cid", ranker(), X)
        assert cid.next_item(by="disagreement") == 7
        cid.done()
        assert cid.next_item(by="disagreement") == 9


def test_probabilities_and_reasons_after_an_answer(session):
    item = session.next_item()
    core = int(ranker().core_[0])
    before = session.view.probability.copy()
    assert before == pytest.approx(ranker().predict_proba(X[item : item + 1])[0])
    assert session.question.reason.pushes == ()
    view = session.answer(core, "yes" if before[core] < 0.5 else "no")
    known = np.full((1, 8), -1)
    known[0, core] = before[core] < 0.5
    assert view.probability == pytest.approx(ranker().predict_proba(X[item : item + 1], known=known)[0])
    label, reason = view.question.label, view.question.reason
    assert reason.before == pytest.approx(before[label])
    pair, labels = ranker().pair_, ranker().core_
    if label not in labels:
        change = view.probability - before
        expected = {int(c): pair[a, label] * change[c] for a, c in enumerate(labels)}
        for push in reason.pushes:
            assert push.by == pytest.approx(expected[push.label])
            assert push.name == NAMES[push.label]
    assert f"{view.question.probability:.0%} likely" in reason.text


def test_what_an_answer_records(session, project):
    item = session.next_item()
    question = session.question
    session.answer(question.label, "yes", milliseconds=700)
    other = next(
        label.label for label in session.view.listed if label.label not in (question.label, session.question.label)
    )
    believed = session.view.probability[other]
    session.volunteer(NAMES[other])
    first, second = project.answers(item)
    version = project.models.all()[-1].number
    assert first[:5] == (item, session.annotator, question.label, 1, "question")
    assert (first.probability, first.milliseconds, first.model) == (question.probability, 700, version)
    assert second[2:5] == (other, 1, "volunteered")
    assert second.probability == pytest.approx(believed)


def test_an_answer_to_another_label_is_volunteered_until_a_question(session, project):
    item = session.next_item()
    first = session.question.label
    other = next(label for label in range(8) if label != first)
    session.answer(first, "yes")
    if session.question.label == other:
        other = next(label for label in range(8) if label not in (first, other))
    session.answer(other, "no")
    session.answer(first, "no")  # changed one's mind
    hows = {answer.label: (answer.value, answer.how) for answer in project.answers(item)}
    assert hows == {first: (0, "question"), other: (0, "volunteered")}


def test_done_closes_the_list_and_confirms_what_was_clicked_on_it(tmp_path):
    with make_project(tmp_path / "scenes.db", list_length=3) as project:
        session = Session(project, "Ann", ranker(), X)
        item = session.next_item()
        clicked = next(label.label for label in session.view.listed if label.label != session.question.label)
        session.volunteer(clicked)
        hidden = int(session.view.order[-1])
        session.volunteer(hidden)  # found by a search
        left = [label.label for label in session.view.listed if label.answer is None]
        assert len(left) == 3
        session.done()
        hows = {answer.label: (answer.value, answer.how) for answer in project.answers(item)}
        assert hows == {clicked: (1, "confirmed"), hidden: (1, "volunteered")} | dict.fromkeys(left, (0, "closed"))
        assert session.item is None
        assert project.state(item, session.annotator).mark == "done"


def test_undo_goes_back_to_the_item_before(session, project):
    first = session.next_item()
    question = session.question
    session.answer(question.label, "yes")
    session.done()
    second = session.next_item()
    assert second != first
    assert session.undo().kind == "done"
    assert session.item == first
    assert session.view.n_questions == 1
    assert session.undo().labels == (question.label,)
    assert session.question == question
    assert session.undo() is None
    assert project.leases.held(session.annotator) == [first]


def test_a_session_that_ended_is_taken_up_again(session, project):
    item = session.next_item()
    session.answer(session.question.label, "yes")
    again = Session(project, "Ann", ranker(), X)
    assert again.item == item
    assert again.question == session.question
    again.done()
    assert Session(project, "Ann", ranker(), X).item is None


def test_two_people_never_have_the_same_item(project):
    snapshot = LabelingState(project, ranker(), X)
    sessions = [snapshot.session(f"person {number}") for number in range(6)]

    def label(session):
        got = []
        while (item := session.next_item()) is not None:
            got.append(item)
            session.answer(session.question.label, "no")
            session.done(shown=())
        return got

    with ThreadPoolExecutor(6) as threads:
        got = [item for items in threads.map(label, sessions) for item in items]
    assert sorted(got) == list(range(24))


def test_who_is_too_late_is_told_and_loses_nothing(clock, project):
    snapshot = LabelingState(project, ranker(), X)
    ann, bob = snapshot.session("Ann"), snapshot.session("Bob")
    item = ann.next_item()
    clock["steady"] += 200.0
    ann.answer(ann.question.label, "yes")  # which keeps it
    clock["steady"] += 200.0
    assert not bob.open(item)
    clock["steady"] += 301.0
    assert bob.open(item)
    view = ann.answer(ann.question.label, "yes")
    assert any("somebody else has it" in note for note in view.notes)
    assert len(list(project.answers(item, ann.annotator))) == 2


def test_without_a_model_the_most_frequent_label_comes_first(project):
    snapshot = LabelingState(project)
    session = snapshot.session("Ann")
    assert session.next_item() == 0
    assert session.view.basis == "frequency"
    assert any("no model yet" in note for note in session.view.notes)
    assert session.question.label == 0
    session.answer(5, "yes")
    session.answer(0, "no")
    session.done(shown=())
    assert session.next_item() == 1
    assert session.question.label == 5
    assert session.question.reason.text == "No model yet: found in 1 of 1 items so far"
    assert session.view.order[-1] == 0
    assert not session.view.enough
    assert np.isnan(session.view.chance)
    for label in range(8):
        session.answer(label, "don't know")
    assert session.view.enough
    assert session.question is None


def test_scores_alone_are_a_model_without_pairs(project):
    log_odds = ranker().decision_function(X)
    session = Session(project, "Ann", scores=log_odds)
    item = session.next_item()
    assert (session.view.basis, session.view.version) == ("scores", None)
    assert session.view.probability == pytest.approx(chances(log_odds[item]))
    view = session.answer(0, "yes")
    assert view.probability[1:] == pytest.approx(chances(log_odds[item, 1:]))


def test_the_calibration_set_has_a_question_for_every_label_in_turn(tmp_path):
    with make_project(tmp_path / "scenes.db", share=0.3, seed=1) as project:
        session = Session(project, "Ann", ranker(), X)
        order = []
        while (item := session.next_item()) is not None:
            order.append((item, session.view.for_calibration))
            if session.view.for_calibration:
                labels = []
                assert session.view.listed == ()
                while session.question is not None:
                    assert session.question.probability is None
                    labels.append(session.question.label)
                    session.answer(labels[-1], truth(item, labels[-1]))
                assert labels == list(range(8))
                assert {answer.model for answer in project.answers(item)} == {None}
                assert {answer.probability for answer in project.answers(item)} == {None}
            session.done()
        without_model = [item for item, without in order if without]
        expected = LabelingState(project, ranker(), X).snapshot.calibration_set
        assert without_model == np.argsort(expected.draw)[: int(expected.members.sum())].tolist()
        places = [place for place, (_, without) in enumerate(order) if without]
        assert places[:3] == [3, 6, 9]  # one in 1 / 0.3, until one kind is used up


@pytest.mark.filterwarnings("ignore:too few of")  # of the four that there are first
def test_a_rule_is_calibrated_once_enough_items_are_complete(tmp_path):
    with make_project(tmp_path / "scenes.db", share=0.5, confidence=0.8) as project:
        state = LabelingState(project, ranker(), X)
        ann = project.people.number("Ann")
        inside = np.flatnonzero(state.snapshot.calibration_set.members)
        assert not state.snapshot.scored.rule.n_rows
        for count, item in enumerate(inside[:8], 1):
            for label in range(8):
                project.answer(int(item), label, int(Y[item, label]), ann)
            project.done(int(item), ann)
            list(state.choose(ann))
            state.refresh(wait=True)
            assert state.snapshot.scored.rule.n_rows == (0 if count < 4 else 4 if count < 8 else 8)
        assert not state.notes()


@pytest.mark.parametrize("most", [0, 256])  # loaded beside the work, or counted at once
def test_what_another_process_records_is_seen(project, monkeypatch, most):
    monkeypatch.setattr(labeling_state, "_MOST_IN_PASSING", most)
    state = LabelingState(project, ranker(), X)
    first, second = state.session("Ann"), state.session("Bob")
    first.next_item(by="file order")
    labels = first.question.label
    with Project.open(project.path) as other:
        bob = other.people.number("import")
        for item, label in [(0, labels), *((1, label) for label in range(8))]:
            other.answer(item, label, 1, bob)
    assert first.question.label != labels
    assert labels in [one.label for one in first.view.listed if one.answer == "yes"]
    state.refresh(wait=True)
    assert second.next_item(by="file order") == 2  # nothing is left to ask of 1
    first.next_item(by="file order")
    second.next_item(by="file order")
    assert np.array_equal(state.snapshot.known.values, project.known().values)
    assert state.snapshot.last_act == project.last_act()


def test_an_answer_counts_for_the_question_that_was_shown(session, project):
    session.next_item()
    labels, chance = session.question.label, session.question.probability
    project.answer(session.item, labels, 0, project.people.number("Bob"))
    view = session.answer(labels, "yes")
    own = next(project.answers(session.item, session.annotator))
    assert (own.label, own.how, own.probability) == (labels, "question", chance)
    assert view is session.view


def test_a_new_version_is_taken_without_waiting_and_the_one_before_again(project):
    state = LabelingState(project, features=X)
    session = state.session("Ann")
    session.next_item()
    assert session.view.basis == "frequency"
    number = keep_model(project, ranker(), note="trained elsewhere")
    state.refresh(wait=True)
    view = session.answer(session.question.label, "yes")
    assert (view.basis, view.version) == ("model", number)
    project.models.use(None)
    state.refresh(wait=True)
    assert session.answer(session.question.label, "yes").basis == "frequency"


def test_a_new_version_that_cannot_be_read_leaves_the_one_before(project):
    state = LabelingState(project, ranker(), X)
    version = state.snapshot.scored.version
    project.models.use(project.models.add("nowhere.safetensors"))
    state.refresh(wait=True)
    session = state.session("Ann")
    session.next_item()
    assert (session.view.basis, session.view.version) == ("model", version)
    assert any("nowhere" in note for note in session.view.notes)


def test_who_starts_with_a_model_that_cannot_be_read_starts_without(project):
    project.models.use(project.models.add("nowhere.safetensors"))
    with pytest.warns(UserWarning, match="The model in use cannot be read: .*nowhere"):
        session = Session(project, "Ann", features=X)
    session.next_item()
    assert session.view.basis == "frequency"
    assert len(session.view.notes) == 2


def test_labels_and_items_that_come_later(project):
    state = LabelingState(project, ranker(), X)
    project.labels.add(["late"])
    project.labels.rename(NAMES[0], "renamed")
    state.refresh(wait=True)
    session = state.session("Ann")
    item = session.next_item()
    probability = session.view.probability
    assert len(probability) == 9
    assert probability[:8] == pytest.approx(ranker().predict_proba(X[item : item + 1])[0])
    assert state.snapshot.names[0] == "renamed"


def test_answers_are_exported(session, tmp_path):
    item = session.next_item()
    session.answer(2, "yes")
    session.export(tmp_path / "out.npz")
    rows = data.read_npz(tmp_path / "out.npz")
    assert np.array_equal(rows.X, X)
    assert rows.Y.toarray()[item, 2] == 1
    assert rows.known.sum() == 1
    session.export(tmp_path / "out.csv", "long")
    assert "label 2" in (tmp_path / "out.csv").read_text()


def test_words_and_numbers_are_checked(session):
    with pytest.raises(ValueError, match="item: expected one that is open"):
        session.answer(0, "yes")
    session.next_item()
    with pytest.raises(ValueError, match="answer: expected one of yes, no, don't know, found 'maybe'"):
        session.answer(0, "maybe")
    with pytest.raises(ValueError, match="label: expected"):
        session.answer(8, "yes")
    with pytest.raises(ValueError, match="label: expected the name of a label, found 'moon'"):
        session.answer("moon", "yes")
    with pytest.raises(ValueError, match="by: expected one of"):
        session.next_item(by="random")


def test_what_a_bench_is_made_of_is_checked(project):
    with pytest.raises(ValueError, match="X: expected a row per item, 24, found 3"):
        LabelingState(project, ranker(), X[:3])
    with pytest.raises(ValueError, match="X: expected a column per label, 8, found 2"):
        LabelingState(project, scores=X[:, :2])
    with pytest.raises(ValueError, match="scores: expected features or scores, found both"):
        LabelingState(project, features=X, scores=Y)
    with pytest.raises(ValueError, match="state: expected"):
        Session(project, "Ann", features=X, state=LabelingState(project))


def test_orders_of_a_plan_are_those_of_next_item():
    assert Plan().order in ORDERS
    with pytest.raises(ValueError, match="order: expected one of"):
        Plan(order="random")
    with pytest.raises(ValueError, match="share: expected a share from 0 to 1, found 2"):
        Plan(share=2)
