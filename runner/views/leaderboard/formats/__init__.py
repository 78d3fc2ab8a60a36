"""The forms that a leaderboard (and one run's scores, for TIRA) comes in: one module each, and their names."""

FORMATS = ("table", "json", "csv", "tsv", "markdown", "latex", "html")
TREC = ("ir_measures", "tot", "trec_eval", "jsonl")  # for tools around TREC
# Of the files that everybody gets who may see the board. A file of trec_eval holds one run, and so no leaderboard.
ENDINGS = {
    **dict(zip(FORMATS, ("txt", "json", "csv", "tsv", "md", "tex", "html"), strict=True)),
    **{form: form for form in TREC if form != "trec_eval"},
}
