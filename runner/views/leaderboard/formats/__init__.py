"""The formats of a leaderboard, one module each; :mod:`runner.views.leaderboard.export` knows them by name."""
