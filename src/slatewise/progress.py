"""How far long work is, for whoever listens."""

from slatewise.core.running.progress import Listener, anybody_listening, is_quiet, listening, set_progress, tell, track

__all__ = ["Listener", "anybody_listening", "is_quiet", "listening", "set_progress", "tell", "track"]
