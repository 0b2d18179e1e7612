"""``slatewise fit --cluster``, with workers of this process."""

import re
from contextlib import contextmanager

import pytest
from tests.cluster.pretend import PretendWorkers

from slatewise import cluster, datasets, load
from slatewise.core.running.executor import on_cluster


@pytest.fixture
def opened(monkeypatch):
    """Open pretended workers in the place of Ray's; says which were asked for."""
    asked = []

    @contextmanager
    def pretend(address, workers):
        asked.append((address, workers, PretendWorkers(2)))
        with on_cluster(asked[-1][2]):
            yield asked[-1][2]

    monkeypatch.setattr(cluster, "ray", pretend)
    return asked


def test_a_fit_on_a_cluster_is_that_of_one_machine(tmp_path, done, run, opened):
    made = datasets.make_queries(n_queries=20, random_state=1)
    path = tmp_path / "rows.svm"
    path.write_text(
        "".join(
            f"{grade:g} qid:{query} " + " ".join(f"{at + 1}:{value!r}" for at, value in enumerate(row.tolist())) + "\n"
            for query in sorted(set(made.qid.tolist()))
            for grade, row in zip(made.y[made.qid == query], made.X[made.qid == query], strict=True)
        )
    )
    done("fit", "margin", path, "--out", tmp_path / "there.safetensors", "--cluster", "local", "--workers", "2")
    done("fit", "margin", path, "--out", tmp_path / "here.safetensors")
    assert [one[:2] for one in opened] == [(None, 2)]
    assert opened[0][2].rounds > 0
    there, here = (load(tmp_path / f"{name}.safetensors") for name in ("there", "here"))
    assert there.coef_.tobytes() == here.coef_.tobytes()
    code, _, err = run("fit", "margin", path, "--out", tmp_path / "m.safetensors", "--workers", "2")
    assert code != 0
    assert "--workers: expected with --cluster, found it alone" in err


@pytest.mark.parametrize("command", ["rank", "evaluate"])
def test_options_that_workers_would_not_heed_are_refused(tmp_path, run, opened, command):
    out = ["--out", tmp_path / "answers"] if command == "rank" else []
    given = [command, tmp_path / "m.safetensors", tmp_path / "rows.parquet", *out]
    for option, message in [
        (["--features", "a,b", "--cluster", "local"], "--id, --features: expected without --cluster, found both"),
        (["--header", "--cluster", "local"], "--header, --labels, .* expected without --cluster, found both"),
        (["--workers", "2"], "--workers: expected with --cluster, found it alone"),
    ]:
        code, _, err = run(*given, *option)
        assert code != 0
        assert re.search(message, " ".join(err.split()))
    assert not opened
