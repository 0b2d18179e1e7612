"""Callbacks of a fit: functions that ``fit`` is given, and objects of scikit-learn's own (1.9 and newer).

scikit-learn's are attached by ``set_callbacks`` and carried along by ``Pipeline`` and searches. They see the fit as a
task with one subtask per round.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from slatewise.core import progress
from slatewise.core.bars import shown
from slatewise.core.rules import CALLBACKS

if TYPE_CHECKING:

    class CallbackSupport:
        """Gives ``set_callbacks`` to an estimator, from scikit-learn 1.9 on."""

        def set_callbacks(self, *callbacks: Any) -> Self: ...  # noqa: D102

    def callback_management_context(estimator: Any) -> Any: ...  # noqa: D103
else:
    try:
        from sklearn.callback import CallbackSupportMixin as CallbackSupport
        from sklearn.callback._callback_support import callback_management_context
    except ImportError:

        class CallbackSupport:
            """Nothing: this scikit-learn has no callbacks."""


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
        with shown(type(estimator).__name__):
            yield tell
        return
    with callback_management_context(estimator):
        fit = estimator._init_callback_context(max_subtasks=None)
        fit.call_on_fit_task_begin(estimator=estimator)

        def tell_all(found: Any) -> None:
            tell(found)
            round_ = fit.subcontext(task_name="round")
            round_.call_on_fit_task_begin(estimator=estimator)
            round_.call_on_fit_task_end(estimator=estimator, metadata={"round": found})

        yield tell_all
        fit.call_on_fit_task_end(estimator=estimator)
