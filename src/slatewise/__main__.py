"""``python -m slatewise`` is the command line."""

from slatewise.cli import main

main()
