"""The command line against a server: where somebody has logged in, and what is asked there."""
