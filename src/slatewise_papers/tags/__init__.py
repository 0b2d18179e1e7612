"""Tags with default settings: tables.py and stopping.py over split.py, and the peers of baselines.py."""
