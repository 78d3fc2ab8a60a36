"""The forms that a leaderboard (and one run's scores, for TIRA) comes in: one module each, and their names."""

FORMATS = ("table", "json", "csv", "markdown", "latex", "html")
TREC = ("ir_measures", "tot", "trec_eval", "jsonl")  # for tools around TREC
