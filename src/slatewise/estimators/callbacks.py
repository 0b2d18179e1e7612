"""Callbacks of a fit: functions that ``fit`` is given, and objects of scikit-learn's own (1.9 and newer).

scikit-learn's are attached by ``set_callbacks`` and carried along by ``Pipeline`` and searches. They see the fit as a
task with one subtask per round.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

from slatewise.core.rules import CALLBACKS
from slatewise.core.running import progress
from slatewise.core.running.progress import progress_bars
from slatewise.estimators.sklearn import available_if


def _has_callbacks(estimator: object) -> bool:
    if find_spec("sklearn.callback") is None:
        raise AttributeError("set_callbacks: expected scikit-learn 1.9 or newer")
    return True


def _support() -> Any:
    """Return scikit-learn's module, on first use: importing it imports rich."""
    return import_module("sklearn.callback._callback_support")


class CallbackSupport:
    """Gives ``set_callbacks`` to an estimator, from scikit-learn 1.9 on."""

    @available_if(_has_callbacks)
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Attach callbacks of scikit-learn, for every fit to come; none at all takes them away.

        Parameters
        ----------
        *callbacks
            Objects as :class:`sklearn.callback.ProgressBar`; functions are an argument of ``fit``.
        """
        return _support().CallbackSupportMixin.set_callbacks(self, *callbacks)


@contextmanager
def watched(estimator: Any, callbacks: Iterable[Callable[[Any], None]] | None) -> Generator[Callable[[Any], None]]:
    """Yield a function that tells all callbacks of a round."""
    CALLBACKS.check("callbacks", callbacks)
    functions = tuple(callbacks or ())

    def tell(found: Any) -> None:
        progress.tell(found)
        for function in functions:
            function(found)

    if not hasattr(estimator, "_skl_callbacks"):  # attached by set_callbacks
        with progress_bars(type(estimator).__name__):
            yield tell
        return
    support = _support()
    with support.callback_management_context(estimator):
        fit = support.CallbackSupportMixin._init_callback_context(estimator, max_subtasks=None)
        fit.call_on_fit_task_begin(estimator=estimator)

        def tell_all(found: Any) -> None:
            tell(found)
            round_ = fit.subcontext(task_name="round")
            round_.call_on_fit_task_begin(estimator=estimator)
            round_.call_on_fit_task_end(estimator=estimator, metadata={"round": found})

        yield tell_all
        fit.call_on_fit_task_end(estimator=estimator)
