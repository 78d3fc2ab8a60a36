"""What can be wrong with records."""

from evaluator.codes import Code

_MISSING = "the record counts as missing"

CODES = (
    Code("F401", "record against the schema", "error", "write records as the task's schema has them (runner task show has an example).", _MISSING),
    Code("F402", "key there twice", "error", "give every key of an object once.", _MISSING),
    Code("F403", "value that cannot be kept", "error", "write finite numbers of at most 40 digits, whole characters, and at most 64 levels.", _MISSING),
    Code("F404", "record without an id", "error", "give every record its id: text of at most 1,000 characters, or a whole number.", "the record is left out"),
    Code("F405", "id there twice", "error", "write one record for each id.", "the first record counts"),
    Code("F406", "unknown id", "error", "answer only records of this dataset, with their ids as given.", "the record is left out"),
    Code("F407", "missing id", "warning", "answer every record: one that is missing counts as the worst value.", "the record counts as missing"),
    Code("F408", "value that a measure cannot use", "error", "write the field as the measure needs it.", "the record counts as missing for this measure"),
    Code("F409", "header of a table", "error", "begin with a line of column names, each once, as the schema has them.", "the column is left out; without a header, everything"),
    Code("F410", "row of another length", "error", "write as many cells in each row as there are column names; put cells with separators into double quotes.", _MISSING),
    Code("F411", "broken quotes in a table", "error", "put cells into double quotes as a whole, and write quotes inside of them twice.", "the row is left out"),
    Code("F412", "missing output file", "error", "write every file that the task asks for.", "its records count as missing"),
)  # fmt: skip
