"""Requests that schemathesis makes from the document: right ones, and wrong ones, against the application in process.

``python -m tests.serve.generated 100000`` makes so many; the suite makes 2,000.
"""

import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings

ADDRESS = "http://127.0.0.1:8000"


def check_generated(asking, n_requests, seed=None):
    """Ask so many requests in all; return how many were asked, by status. Raise at a 5xx, or an undocumented answer."""
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

            with suppress(hypothesis.errors.Unsatisfiable):  # what takes nothing cannot be asked wrongly
                ask()
    return counts


def main(n_requests):
    from tests.serve.conftest import fit_plays, fit_scenes, make_asking

    os.environ.setdefault("SLATEWISE_QUIET", "1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spool").mkdir()
        fit_plays().save(folder / "plays.safetensors")
        fit_plays(names=True).save(folder / "names.safetensors")
        fit_scenes().save(folder / "tags.safetensors")
        files = {name: folder / f"{name}.safetensors" for name in ("plays", "names", "tags")}
        asking = make_asking(files, folder / "spool", n_threads=1)
        asking.service.models.look()
        counts = check_generated(asking, n_requests)
        asking.service.close()
    print(json.dumps({"requests": sum(counts.values()), "by status": dict(sorted(counts.items()))}))


if __name__ == "__main__":
    from slatewise.serve.hearing import hear_warnings

    hear_warnings()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
