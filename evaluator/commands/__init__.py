"""The commands of ``evaluator``, one module for those of a kind: what is printed, and what is written where."""
