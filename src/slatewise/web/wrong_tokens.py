"""Who showed wrong tokens is not heard for a while, even with a right one: a guess must not be told from noise."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock

_MOST_CLIENTS = 10_000


class WrongTokens:
    """Counts wrong tokens per client over the last while; what is remembered is bounded.

    Parameters
    ----------
    most
        Wrong tokens that a client may show within ``seconds``.
    seconds
        How long one counts.
    clock
        Seconds of a clock that only goes on.

    Examples
    --------
    >>> wrong = WrongTokens(most=2, seconds=60)
    >>> for _ in range(2):
    ...     wrong.add("203.0.113.7")
    >>> wrong.wait("203.0.113.7") > 0, wrong.wait("203.0.113.8")
    (True, 0)
    """

    def __init__(self, most: int = 10, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = Lock()

    def add(self, client: str) -> None:
        """Remember that a client showed a wrong token."""
        with self._lock:
            times = self._times.setdefault(client, deque(maxlen=self._most))
            times.append(self._clock())
            self._times.move_to_end(client)
            if len(self._times) > _MOST_CLIENTS:
                self._times.popitem(last=False)

    def wait(self, client: str) -> int:
        """Return for how many seconds the client is not heard, 0 where it is."""
        with self._lock:
            times = self._times.get(client)
            if times is None or len(times) < self._most:
                return 0
            left = times[0] + self._seconds - self._clock()
            return max(int(left) + 1, 0) if left > 0 else 0
