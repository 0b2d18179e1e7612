"""Options that are declared once for several commands."""

import inspect

import pytest
import typer
from typer.testing import CliRunner

from slatewise.cli.options import DEFAULT_DATA, ClusterOptions, DataOptions, FilterOptions, with_options


@pytest.fixture
def command():
    app, found = typer.Typer(), {}

    @app.command()
    @with_options
    def read(data: str, options: DataOptions, filters: FilterOptions, cluster: ClusterOptions, top: int = 10) -> None:
        found.update(data=data, options=options, filters=filters, cluster=cluster, top=top)

    def run(*words):
        done = CliRunner().invoke(app, list(words), catch_exceptions=False)
        return done.exit_code, found

    return run


def test_options_become_groups(command):
    words = ["rows.csv", "--no-header", "--tags=tags", "--gap=2.5", "--exclude-last", "--workers=3", "--top=4"]
    code, found = command(*words)
    assert code == 0
    assert found["options"] == DataOptions(header=False, tags="tags", gap=2.5)
    assert (found["options"].tagged, found["options"].events) == (True, True)
    assert (found["filters"].exclude_seen, found["cluster"].workers, found["top"]) == ("last", 3, 4)


def test_defaults_are_those_of_the_groups(command):
    _, found = command("rows.csv")
    assert (found["options"], found["filters"], found["cluster"]) == (DEFAULT_DATA, FilterOptions(), ClusterOptions())
    assert not DEFAULT_DATA.tagged
    assert not DEFAULT_DATA.events


def test_fields_without_an_option_are_not_on_the_command_line(command):
    assert command("rows.csv", "--weight", "plays")[0] == 2


def test_a_command_has_one_parameter_for_each_option():
    def read(cluster: ClusterOptions, top: int = 1) -> None: ...

    assert list(inspect.signature(with_options(read)).parameters) == ["cluster", "workers", "top"]


@pytest.mark.parametrize(
    ("options", "filters", "message"),
    [
        (DataOptions(header=True), FilterOptions(), "--header, --labels, .*: expected without --cluster"),
        (DataOptions(tags="tags"), FilterOptions(), "--header, --labels, .*: expected without --cluster"),
        (DataOptions(gap=1.0), FilterOptions(), "--exclude-seen, .*--gap: expected without --cluster"),
        (DataOptions(), FilterOptions(seen=True), "--exclude-seen, .*--gap: expected without --cluster"),
    ],
)
def test_workers_of_a_cluster_take_no_options_of_data(options, filters, message):
    with pytest.raises(ValueError, match=message):
        ClusterOptions("local").check(options, filters)


def test_workers_need_a_cluster():
    with pytest.raises(ValueError, match="--workers: expected with --cluster, found it alone"):
        ClusterOptions(workers=2).open()
