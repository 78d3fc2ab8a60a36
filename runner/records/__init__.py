"""What is kept: the archive of attempts, the event log, and the database made from both."""
