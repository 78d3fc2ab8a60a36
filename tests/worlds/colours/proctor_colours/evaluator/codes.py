"""What can be wrong with colours."""

from evaluator.codes import Code

CODES = (Code("F901", "not a colour", "error", "write a colour.", "the line is left out"),)
