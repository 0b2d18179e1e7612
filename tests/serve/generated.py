"""Requests that schemathesis makes from the document: right ones, and wrong ones, against the application in process.

The suite makes 600, ``python -m tests.serve.endurance fuzz`` 100,000; some are asked in MessagePack too.
"""

import json
import sys
from contextlib import suppress

import msgspec
from hypothesis import HealthCheck, Phase, settings

PART = 2000
MESSAGEPACK = "application/msgpack"
ADDRESS = "http://127.0.0.1:8000"


def check_generated(asking, n_requests, seed=None, twins=1):
    """Ask so many requests, or a few more, that schemathesis makes; of those with a body one in ``twins`` twice.

    Returns how many schemathesis made, by the status of their answers, and how many were asked again, in MessagePack.
    Raises at a 5xx, an undocumented answer, and where the two are not alike.
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
    shares = {schemathesis.GenerationMode.POSITIVE: 0.85, schemathesis.GenerationMode.NEGATIVE: 0.08}  # which are dear
    counts, n_posts, n_twins = {}, 0, 0
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
                nonlocal n_posts, n_twins
                answered = case.call(session=session, base_url=ADDRESS)
                counts[answered.status_code] = counts.get(answered.status_code, 0) + 1
                case.validate_response(answered, checks=checks)
                if case.method == "POST" and answered.status_code in (200, 422):
                    n_posts += 1
                    n_twins += n_posts % twins == 0 and is_alike_in_messagepack(asking, case, answered)

            with suppress(hypothesis.errors.Unsatisfiable):  # what takes nothing cannot be asked wrongly
                ask()
    return counts, n_twins


def is_alike_in_messagepack(asking, case, answered):
    """Ask the same in MessagePack; what JSON could answer has the same answer, an infinity apart.

    False where MessagePack has no such number.
    """
    try:
        body = msgspec.msgpack.encode(case.body)
    except (OverflowError, TypeError):
        return False
    kinds = [("content-type", MESSAGEPACK), ("accept", MESSAGEPACK)]
    twin = asking.raw("POST", case.formatted_path, body, kinds)
    assert twin.headers["content-type"] == MESSAGEPACK
    assert twin.status in (200, 422), (case.body, twin.body)
    if answered.status_code == 200:
        assert msgspec.json.encode(msgspec.msgpack.decode(twin.body)) == answered.content
    return True


def fuzz(folder, n_requests, seed=0):
    """Ask models of every kind, with the limits of a service; return how many requests were asked, and answered how.

    Parts have seeds of their own, from ``seed`` on; what was asked so far is said after each.
    """
    from slatewise.serve.batching import install_warning_hook
    from tests.serve.conftest import make_asking, save_models
    from tests.serve.test_sessions import fit_sessions

    install_warning_hook()
    (folder / "spool").mkdir()
    files = save_models(folder)
    for name, model in fit_sessions().items():
        files[name] = folder / f"{name}.safetensors"
        model.save(files[name])
    asking = make_asking(files, folder / "spool", n_jobs=1)
    asking.service.models.look()
    total, asked, again = {}, 0, 0
    while asked < n_requests:
        counts, n_twins = check_generated(asking, min(n_requests, PART), seed, twins=2)
        for status, count in counts.items():
            total[status] = total.get(status, 0) + count
        seed, asked, again = seed + 1, sum(total.values()), again + n_twins
        found = {"requests": asked, "in MessagePack too": again, "models": len(files)}
        found["by status"] = dict(sorted(total.items()))
        print(json.dumps(found), file=sys.stderr, flush=True)
    asking.service.close()
    return found
