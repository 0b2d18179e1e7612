"""Mensink, Verbeek and Caetano (2011): tables.py over data.py, scores.py and likelihood.py."""
