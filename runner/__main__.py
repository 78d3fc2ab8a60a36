"""``python -m runner`` is the ``runner`` command."""

from runner.cli.app import main

main()
