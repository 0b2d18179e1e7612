"""Tags with default settings: tables.py and stopping.py over split.py and peers.py."""
