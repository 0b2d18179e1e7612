"""The command line: ``slatewise``, or ``python -m slatewise``."""
