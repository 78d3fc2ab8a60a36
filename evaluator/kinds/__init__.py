"""The kinds of tasks: one module a kind, found by its name (:mod:`evaluator.kinds.base`)."""
