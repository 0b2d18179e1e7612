"""``python -m slatewise`` is the command line."""

from slatewise.cli.main import main

main()
