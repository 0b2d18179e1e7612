"""Compiled loops of collaborative ranking."""
