"""No deadline: the first example that meets a kernel pays for compiling it."""

from hypothesis import settings

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
