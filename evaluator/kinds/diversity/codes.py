"""What can be wrong with lists of arguments."""

from evaluator.codes import Code

CODES = (
    Code("F102", "not an object", "error", 'write one object a line: {"query_id": 0, "relevant_candidates": [...]}.', "it is left out"),
    Code("F103", "query id missing or not an integer", "error", "give every object the query_id of a query of this dataset, an integer.", "it is left out"),
    Code("F104", "no list of candidates", "error", "give every object a list relevant_candidates, best first.", "the query is answered with nothing"),
    Code("F105", "key given twice", "error", "give every key once, and the candidates under relevant_candidates only.", "the last one counts, relevant_candidates before retrieved_candidates"),
    Code("F106", "candidate is not an integer", "error", "list argument_ids as integers.", "it is left out, and those behind it move up"),
    Code("F107", "candidate written as text", "warning", "write argument_ids as integers, without quotes."),
    Code("F108", "query answered twice", "error", "write one object per query.", "the first answer counts"),
    Code("F109", "unknown query", "error", "answer only queries of this dataset and scenario.", "it is left out"),
    Code("F110", "query not answered", "error", "answer every query, if need be with an empty list.", "the query scores 0"),
    Code("F111", "unknown candidate", "error", "list only arguments of this dataset's corpus.", "it counts as not relevant"),
    Code("F112", "candidate listed twice", "error", "list every argument once per query.", "its first place counts, and those behind the others move up"),
    Code("F113", "repeated candidates are scored", "warning", "list every argument once per query."),
    Code("F114", "fewer candidates than the cut-off", "warning", "list more candidates: what is not there cannot be found."),
    Code("F115", "no candidates", "warning", "list candidates: an empty list finds nothing."),
    Code("F116", "too many candidates", "warning", "cut the list of every query: only its beginning counts.", "the beginning counts"),
    Code("F117", "line or object too long", "error", "write one object per query, with no more candidates than allowed.", "it is left out"),
)  # fmt: skip
