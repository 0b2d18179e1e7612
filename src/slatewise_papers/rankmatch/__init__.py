"""Petterson, Caetano, McAuley and Yu (2009): tables.py over ranking.py and images.py."""
