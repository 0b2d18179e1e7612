"""Next items of sessions: tables.py over data.py and methods.py; cells.py runs it in many processes."""
