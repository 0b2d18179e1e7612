"""Estimators with no argument: tables.py runs the other modules, each with ``rows(quick, seed)``."""
