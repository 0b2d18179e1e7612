"""Requests that are answered together get what they would get alone; a full queue refuses; nobody hears of others."""

import asyncio
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import httpx
import msgspec
import numpy as np
import pytest

from slatewise.serve.batching import Batcher, QueueFull
from slatewise.serve.endpoints.base import CheckedRequest, Endpoint
from slatewise.serve.settings import Limits
from slatewise.web.codec import RequestError

LIMITS = Limits(waiting=4, batch=8, at_once=1, seconds=30.0)


class Slow:
    """An endpoint that waits until it is released, and remembers its batches."""

    def __init__(self):
        self.go, self.batches = threading.Event(), []
        self.endpoint = Endpoint("rank", msgspec.Struct, msgspec.Struct, None, self.respond, "ids", None)

    def respond(self, batch):
        self.go.wait(30)
        self.batches.append([asked.request for asked in batch])
        if any(asked.request == "wrong" for asked in batch):
            raise RequestError("queries", "expected another", 422)
        return [[asked.request] for asked in batch]


def write(parts, warnings):
    return str(parts[0]).encode()


def asked(request, key="same", size=1):
    return CheckedRequest(request, size, key)


def run(work, limits=LIMITS):
    async def inside():
        with ThreadPoolExecutor(2) as pool:
            return await work(Batcher(pool, limits))

    return asyncio.run(inside())


def test_what_waits_is_answered_together():
    slow = Slow()

    async def work(batcher):
        first = asyncio.create_task(batcher.answer(slow.endpoint, asked("a"), write))
        await asyncio.sleep(0)
        others = [asyncio.create_task(batcher.answer(slow.endpoint, one, write)) for one in
                  (asked("b"), asked("c", "other"), asked("d", None), asked("e"))]  # fmt: skip
        await asyncio.sleep(0)
        slow.go.set()
        return await asyncio.gather(first, *others)

    assert run(work) == [b"a", b"b", b"c", b"d", b"e"]
    assert slow.batches == [["a"], ["b", "e"], ["c"], ["d"]]


def test_a_full_queue_refuses_and_says_when_to_come_back():
    slow = Slow()

    async def work(batcher):
        tasks = [asyncio.create_task(batcher.answer(slow.endpoint, asked(n), write)) for n in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull) as full:
            await batcher.answer(slow.endpoint, asked("late"), write)
        assert full.value.retry_after >= 1
        slow.go.set()
        return await asyncio.gather(*tasks)

    assert run(work) == [b"0", b"1", b"2", b"3", b"4"]


def test_an_error_reaches_only_its_request():
    slow = Slow()

    async def work(batcher):
        texts = ["a", "b", "wrong", "c", "d"]
        tasks = [asyncio.create_task(batcher.answer(slow.endpoint, asked(one), write)) for one in texts]
        await asyncio.sleep(0)
        slow.go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = run(work)
    assert isinstance(found[2], RequestError)
    assert [one for one in found if isinstance(one, bytes)] == [b"a", b"b", b"c", b"d"]


def test_a_warning_reaches_only_its_request():
    slow = Slow()

    def respond(batch):
        answers = slow.respond(batch)
        for one in batch:
            if one.request == "odd":
                warnings.warn("one of them is odd", stacklevel=1)
        return answers

    slow.endpoint = Endpoint("rank", msgspec.Struct, msgspec.Struct, None, respond, "ids", None)

    async def work(batcher):
        texts = ["a", "b", "odd", "c"]
        tasks = [
            asyncio.create_task(
                batcher.answer(slow.endpoint, asked(one), lambda parts, told: str((parts[0], told)).encode())
            )
            for one in texts
        ]
        await asyncio.sleep(0)
        slow.go.set()
        return await asyncio.gather(*tasks)

    assert run(work) == [b"('a', ())", b"('b', ())", b"('odd', ('one of them is odd',))", b"('c', ())"]
    assert slow.batches == [["a"], ["b", "odd", "c"], ["b"], ["odd"], ["c"]]


def test_a_batch_has_a_size():
    slow = Slow()

    async def work(batcher):
        tasks = [asyncio.create_task(batcher.answer(slow.endpoint, asked(n, size=3), write)) for n in range(5)]
        await asyncio.sleep(0)
        slow.go.set()
        return await asyncio.gather(*tasks)

    run(work)
    assert slow.batches == [[0], [1, 2], [3, 4]]


def test_who_gave_up_is_not_answered():
    slow = Slow()

    async def work(batcher):
        first = asyncio.create_task(batcher.answer(slow.endpoint, asked("a"), write))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await batcher.answer(slow.endpoint, asked("b"), write)
        slow.go.set()
        return await first

    assert run(work) == b"a"
    assert slow.batches == [["a"]]


def ask_together(asking, requests):
    """Ask all at once, on one loop; return the bodies in order."""

    async def work():
        transport = httpx.ASGITransport(asking.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            sent = [client.post(f"/v1/models/{name}/{route}", json=body) for name, route, body in requests]
            return [(one.status_code, one.json()) for one in await asyncio.gather(*sent)]

    return asyncio.run(work())


def test_answers_of_a_batch_are_those_of_direct_calls(asking, direct):
    """Ids, but where neighbouring scores are closer than 1e-5, and scores within 1e-5, of every kind of model."""
    rng = np.random.default_rng(0)
    requests = []
    for _ in range(60):
        requests.append(("plays", "rank", {"queries": rng.integers(0, 30, 2).tolist(), "k": int(rng.integers(4, 6))}))
        requests.append(("plays", "rank", {"queries": rng.integers(0, 30, (2, 3)).tolist(), "k": 5}))
        requests.append(("plays", "rank", {"queries": [1, 2], "k": 5, "exclude": rng.integers(0, 30, (2, 3)).tolist()}))
        requests.append(("rows", "rank", {"queries": rng.normal(size=(1, 3)).tolist(), "k": 5}))
        requests.append(("near", "rank", {"queries": rng.normal(size=(1, 3)).tolist(), "k": 5}))
        requests.append(
            ("tags", "rank", {"queries": rng.normal(size=(1, 8)).tolist(), "k": 5, "known": [{"tag 1": 1}]})
        )
    found = ask_together(asking, requests)
    figures = asking.service.metrics.registry
    assert figures.get_sample_value("slatewise_batch_queries_count", {"model": "plays", "route": "rank"}) < 180
    for (name, _, body), (status, answer) in zip(requests, found, strict=True):
        assert status == 200, answer
        ranker, queries, k = direct[name], body["queries"], body["k"]
        if name == "plays" and isinstance(queries[0], list):
            expected = ranker.rank(ranker.fold_in(queries), k)
        elif name == "plays":
            expected = ranker.rank(queries, k, exclude=body.get("exclude"))
        else:
            expected = ranker.rank(queries, k, **({"known": body["known"]} if "known" in body else {}))
        for place, one in enumerate(answer["answers"]):
            scores = expected.list_scores(place)
            given = np.array([np.inf if score is None else score for score in one["scores"]])
            np.testing.assert_allclose(given, scores, rtol=1e-5, atol=1e-9)
            alike = [n for n, (a, b) in enumerate(zip(one["ids"], expected[place].tolist(), strict=True)) if a != b]
            for n in alike:
                assert np.abs(np.diff(scores[max(n - 1, 0) : n + 2])).min() <= 1e-5 * abs(scores[n])


def test_wrong_requests_among_others(asking, direct):
    """Errors of the estimator reach the request that caused them, in a batch too."""
    good, bad = {"queries": [[0.5, 0.0, 0.0]], "k": 3}, {"queries": [[1e300, 0.0, 0.0]], "k": 3}
    found = ask_together(asking, [("rows", "rank", bad if n % 7 == 3 else good) for n in range(30)])
    expected = direct["rows"].rank(good["queries"], 3).ids[0].tolist()
    for number, (status, answer) in enumerate(found):
        if number % 7 == 3:
            assert (status, answer["place"]) == (422, "queries")
        else:
            assert (status, answer["answers"][0]["ids"]) == (200, expected)
