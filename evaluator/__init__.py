"""The evaluator: reads one run, says everything that is wrong with it, and scores it against the truths.

It runs in a container without a network, and is the only part that sees truths. It shares nothing with the
runner but files (``request.json`` in; ``result.json``, ``scores.jsonl`` and ``findings.jsonl`` out).
"""

__version__ = "0.1.0"
