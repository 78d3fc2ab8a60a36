"""The formats of a leaderboard, one module each; :mod:`runner.leaderboard.export` knows them by name."""
