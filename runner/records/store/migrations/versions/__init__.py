"""The steps from one shape of the database to the next, oldest first."""
