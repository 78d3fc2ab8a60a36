"""What can be wrong with a run in TREC's format."""

from evaluator.codes import Code

CODES = (
    Code("F006", "byte order mark", "error", "write UTF-8 without a byte order mark: it becomes part of the first topic.", "the mark is left out"),
    Code("F007", "control character", "error", "write text only: no NUL and no other control character but tab and newline.", "the line counts, and the character is part of its column (carriage return, vertical tab and form feed part columns)"),
    Code("F008", "Windows line ends", "warning", "end lines with a newline only."),
    Code("F010", "wrong number of columns", "error", "write six columns: topic Q0 document rank score tag.", "a line of more than six columns counts with the first six; a line of fewer is left out"),
    Code("F011", "second column is not Q0", "warning", "write Q0 in the second column."),
    Code("F012", "duplicate document", "error", "keep one line per document and topic.", "the document's first line counts"),
    Code("F013", "rank is not an integer", "error", "write ranks as integers: 1, 2, 3, ...", "the line counts (its place comes from the score); a rank that is no number comes behind all others"),
    Code("F014", "score is not a finite number", "error", "write scores as decimal numbers such as 12.5 or 3e-05.", "infinity counts; a line whose score is no number is left out"),
    Code("F015", "several run tags", "error", "write the same tag in every line.", "the first tag is the run's"),
    Code("F016", "unusual run tag", "warning", "use 1 to 40 letters, digits, dots, hyphens and underscores."),
    Code("F017", "unknown topic", "error", "answer only topics of this dataset, with their ids as given.", "its lines are left out"),
    Code("F018", "missing topic", "warning", "answer every topic: one without documents scores 0.", "the topic scores 0"),
    Code("F019", "unknown document", "error", "list only documents of this dataset, with their ids as given.", "it counts as a document that nobody has judged"),
    Code("F020", "too many documents for a topic", "error", "cut the list of every topic.", "the list is cut, in the order of the scores"),
    Code("F021", "score rises with rank", "warning", "make scores fall with rank: the order is taken from the scores, not the ranks."),
    Code("F022", "rank given twice", "warning", "give every document of a topic a rank of its own."),
    Code("F023", "tied scores", "warning", "break ties in your scores: documents with equal scores are ordered by id, falling.", "it is said only where a mean score would differ in the order of the ranks"),
    Code("F024", "scores tied in single precision", "warning", "make scores differ in their first 7 digits, or scale them.", "like F023"),
    Code("F025", "empty line", "warning", "leave empty lines out."),
    Code("F026", "too many lines for one topic", "error", "cut the list of every topic.", "the topic scores 0"),
)  # fmt: skip
