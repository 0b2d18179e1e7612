"""How much one request may ask for, and how many may wait."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Of a service; all are stated in its OpenAPI document."""

    queries: int = 1024
    """Of one request."""
    k: int = 1000
    """Places of a list."""
    numbers: int = 200_000
    """Scores of one answer: queries times places, or times items."""
    ids: int = 10_000
    """Of one list: a session, what it excludes, candidates, items to score."""
    body_bytes: int = 4 << 20
    seconds: float = 30.0
    """From the arrival of a request to its answer."""
    waiting: int = 512
    """Requests for one model that wait for a thread; one more is refused with 429."""
    large: int = 32
    """Requests with bodies of 32 KiB or more, for all models, from the end of the body to the answer; one more is
    refused with 429. Those that are still arriving hold at most this number of times ``body_bytes`` together."""
    batch: int = 256
    """Queries of several requests that are answered together."""
    at_once: int = 2
    """Batches of one model that run at the same time: while a long one runs, short ones pass."""
