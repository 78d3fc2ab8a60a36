"""``python -m runner`` is the ``runner`` command."""

from runner.cli.main import main

main()
