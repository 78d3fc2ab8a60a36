"""What front and work give each other: ``published/`` and ``inbox/``. The contract, and the only code that both sides share."""
