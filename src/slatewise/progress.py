"""Progress of long work, for listeners; see :mod:`slatewise.core.running.progress`."""

from slatewise.core.running.progress import Listener, anybody_listening, is_quiet, listening, set_progress, tell, track

__all__ = ["Listener", "anybody_listening", "is_quiet", "listening", "set_progress", "tell", "track"]
