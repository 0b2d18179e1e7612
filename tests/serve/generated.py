"""Requests that schemathesis makes from the document: right ones, and wrong ones, against the application in process.

The suite makes 1,000 and asks them in JSON and in MessagePack, ``python -m tests.serve.endurance fuzz`` 100,000.
"""

import json
import sys
from contextlib import suppress

import msgspec
from hypothesis import HealthCheck, Phase, settings

PART = 2000
MESSAGEPACK = "application/msgpack"
ADDRESS = "http://127.0.0.1:8000"


def check_generated(asking, n_requests, seed=None):
    """Ask so many requests that schemathesis makes, and those with a body once more in MessagePack.

    Returns how many were asked, by status. Raises at a 5xx, an undocumented answer, and where the two are not alike.
    """
    import hypothesis
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.python.asgi import ASGIClient
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    schema = schemathesis.openapi.from_dict(asking.get("/openapi.json")[1])
    schema.app, session = asking.app, ASGIClient(asking.app, ADDRESS)
    operations = [result.ok() for result in schema.get_all_operations()]
    n_open = sum(operation.method == "post" for operation in operations)  # others have few requests to make
    shares = {schemathesis.GenerationMode.POSITIVE: 0.8, schemathesis.GenerationMode.NEGATIVE: 0.25}  # which are dear
    counts = {}
    quiet = [
        HealthCheck.filter_too_much,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ]
    for operation in operations:
        for mode, share in shares.items():
            strategy = operation.as_strategy(generation_mode=mode)

            @hypothesis.seed(seed or 0)
            @settings(
                max_examples=1 + int(share * n_requests / n_open),
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=quiet,
            )
            @hypothesis.given(case=strategy)
            def ask(case):
                answered = case.call(session=session, base_url=ADDRESS)
                counts[answered.status_code] = counts.get(answered.status_code, 0) + 1
                case.validate_response(answered, checks=checks)
                if case.method == "POST" and answered.status_code in (200, 422):
                    status = check_twin(asking, case, answered)
                    counts[status] = counts.get(status, 0) + 1

            with suppress(hypothesis.errors.Unsatisfiable):  # what takes nothing cannot be asked wrongly
                ask()
    return counts


def check_twin(asking, case, answered):
    """Ask the same in MessagePack; what JSON could answer has the same answer, an infinity apart. Return the status."""
    try:
        body = msgspec.msgpack.encode(case.body)
    except (OverflowError, TypeError):  # MessagePack has no such number
        return answered.status_code
    kinds = [("content-type", MESSAGEPACK), ("accept", MESSAGEPACK)]
    twin = asking.raw("POST", case.formatted_path, body, kinds)
    assert twin.headers["content-type"] == MESSAGEPACK
    assert twin.status in (200, 422), (case.body, twin.body)
    if answered.status_code == 200:
        assert msgspec.json.encode(msgspec.msgpack.decode(twin.body)) == answered.content
    return twin.status


def fuzz(folder, n_requests, seed=0):
    """Ask models of every kind, with the limits of a service; return how many requests were asked, and answered how.

    Parts have seeds of their own, from ``seed`` on; what was asked so far is said after each.
    """
    from slatewise.serve.hearing import hear_warnings
    from tests.serve.conftest import make_asking, save_models
    from tests.serve.test_sessions import fit_sessions

    hear_warnings()
    (folder / "spool").mkdir()
    files = save_models(folder)
    for name, model in fit_sessions().items():
        files[name] = folder / f"{name}.safetensors"
        model.save(files[name])
    asking = make_asking(files, folder / "spool", n_threads=1)
    asking.service.models.look()
    total, asked = {}, 0
    while asked < n_requests:
        for status, count in check_generated(asking, min(n_requests, PART), seed).items():
            total[status] = total.get(status, 0) + count
        seed, asked = seed + 1, sum(total.values())
        found = {"requests": asked, "models": len(files), "by status": dict(sorted(total.items()))}
        print(json.dumps(found), file=sys.stderr, flush=True)
    asking.service.close()
    return found
