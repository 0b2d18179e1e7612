"""Whatever is sent to the page, right or wrong by its own OpenAPI, is answered as that says, and never with a failure.

In the suite 900 requests; ``python -m tests.labeling.page.fuzz --requests 100000`` for more, in parts with a seed
and a project each: hypothesis slows down with the cases that it made, and so does a project with thousands of people.
schemathesis makes the requests, half of them against the rules, and checks the answers: status, kind and shape as
documented. Each is sent by the owner on a machine of one's own, and by an annotator with a token; outside the suite
also by a reviewer and an owner with tokens. There is no network between.
"""

import argparse
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks
from schemathesis.core.failures import FailureGroup
from tests.labeling.page.client import ORIGIN, LocalClient, make_files
from tests.labeling.scenes import NAMES, X, ranker

from slatewise.labeling import Item, ItemData, Plan, Project, keep_model
from slatewise.labeling.page.access_tokens import new_token
from slatewise.labeling.retraining import Trainer
from slatewise.web.site import Site

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


class Found(NamedTuple):
    """How many requests were made, what they were answered with, and what was wrong."""

    requests: int
    statuses: Counter
    faults: list[str]


def make_project(folder):
    """Make a project with every kind of item, a model, and a few answers of two people who disagree."""
    make_files(folder / "files", len(X))
    items = [Item(f"scene {number}", "image", f"{number}.svg", folder / "files") for number in range(len(X))]
    items[1], items[3] = Item("poem", "text", "Waves."), Item("page", "link", "https://example.org/")
    items[2] = Item("noise", "audio", "noise.wav", folder / "files")
    with Project.create(folder / "scenes.db", NAMES, items) as project:
        Plan(share=0.1, overlap=2, retrain_every=0).keep(project)
        ItemData.of(project, np.asarray(X)).attach(project)
        keep_model(project, ranker())
        for name, value in (("Ann", 1), ("Bob", 0)):
            project.answer(5, 3, value, project.people.number(name))
    return folder / "scenes.db"


@contextmanager
def both_pages(folder):
    """Yield the page of a project for its owner, and of another one for an annotator with a token."""
    folders = [Path(folder, name) for name in ("own", "others")]
    for one in folders:
        one.mkdir()
    path = make_project(folders[1])
    with Project.open(path) as project:
        token = new_token(project, "Ann")
    with LocalClient(make_project(folders[0])) as own, LocalClient(path, Site.public(ORIGIN), token) as others:
        yield own, others


class As:
    """A page that somebody asks with another token."""

    def __init__(self, client, name, role):
        self._asking = client
        self._own = {"authorization": f"Bearer {new_token(client.page_state.project, name, role)}"}

    def ask(self, method, path, headers=None, **more):
        return self._asking.ask(method, path, headers={**(headers or {}), **self._own}, **more)


def fuzz(pages, schema, n_requests, start=0):
    """Send about so many requests, as many to every route, and collect what is wrong; of each route the first fault."""
    schema = schemathesis.openapi.from_dict(schema)
    operations = [found.ok() for found in schema.get_all_operations()]
    statuses, faults, made = Counter(), [], 0

    def tried(operation, mode, count):
        nonlocal made

        @seed(start)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def one(case):
            nonlocal made
            for page in pages:
                reply = sent(page, case)
                made += 1
                statuses[reply.status_code] += 1
                case.validate_response(reply, checks=CHECKS)

        try:
            one()
        except Unsatisfiable:
            pass  # a route without parameters has no wrong requests
        except (Exception, FailureGroup) as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            faults.append(f"{operation.label} ({mode.value}): " + " / ".join(lines[:12]))

    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            count = -(-n_requests // (2 * len(operations) * len(pages)))
            tried(operation, mode, count)
    return Found(made, statuses, faults)


def sent(client, case):
    """Send a request that schemathesis made."""
    wanted = case.as_transport_kwargs(base_url="http://localhost:8765")
    more = {name: wanted[name] for name in ("params", "json", "cookies") if wanted.get(name) is not None}
    if wanted.get("data") is not None:
        more["content" if isinstance(wanted["data"], bytes | str) else "data"] = wanted["data"]
    # What the page itself sends stays: else nearly everything ends at the guard, which has tests of its own.
    ours = {"origin", "x-form-token", "host", "content-length", "cookie"}
    headers = {name: value for name, value in wanted.get("headers", {}).items() if name.lower() not in ours}
    more.pop("cookies", None)
    return client.ask(wanted["method"], wanted["url"], headers=headers, **more)


def main():
    """Send as many requests as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--part", type=int, default=4000, help="Requests with one seed and one project.")
    parser.add_argument("--seed", type=int, default=0, help="Of the first part.")
    arguments = parser.parse_args()
    Trainer.start = lambda self: False  # to train is another test
    made, statuses, faults, start = 0, Counter(), [], arguments.seed
    while made < arguments.requests:
        with tempfile.TemporaryDirectory() as folder, both_pages(folder) as pages:
            roles = [As(pages[1], "Rita", "reviewer"), As(pages[1], "Oona", "owner")]
            found = fuzz([*pages, *roles], pages[0].get("/openapi.json"), arguments.part, start)
        made, statuses, start = made + found.requests, statuses + found.statuses, start + 1
        faults += found.faults
        print(f"{made} requests, seed {start - 1}: {dict(sorted(statuses.items()))}, {len(faults)} faults", flush=True)
        print(*(f"{fault}\n" for fault in found.faults), sep="", end="", flush=True)
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())
