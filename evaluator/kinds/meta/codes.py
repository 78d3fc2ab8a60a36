"""What can be wrong with judgments of debates and with leaderboards."""

from evaluator.codes import Code

LINES = (
    Code("F231", "not one debate's judgments", "error", 'write one object a line: {"userTurnsEvaluations": [{"Quantity": {"score": 1}, ...}, ...]}.', "all judgments of that debate are no"),
    Code("F232", "debate without judgments", "defect", "write a list userTurnsEvaluations with one object per turn; what is missing counts as no.", "all judgments of that debate are no"),
    Code("F233", "wrong number of debates or turns", "error", "write one line per debate and one object per turn, in the order of the input.", "lines are matched with debates by their place, what is missing is no, and lines too many are left out; of a debate with another number of turns all judgments are no"),
)  # fmt: skip
JUDGMENTS = (
    Code("F234", "judgment without a score", "defect", 'write an object with a score, such as {"score": 0.7}; this one counts as no.', "it is no"),
    Code("F235", "score is not a number from 0 to 1", "defect", "write scores as numbers from 0 to 1, without quotes; this one counts as no.", "it is no"),
    Code("F236", "criterion given twice", "defect", "give each criterion once per turn; this one counts as no.", "it is no"),
    Code("F237", "judgments of another debate", "error", "keep the order of the input: debates are matched by their position.", "all judgments of that debate are no"),
    Code("F238", "judgment missing", "defect", "judge every turn: a missing judgment counts as no.", "it is no"),
    Code("F239", "no judgment at all", "error", "judge at least one of Quantity, Quality, Relation and Manner.", "no measure has a value"),
    Code("F240", "criterion not judged", "warning", "judge it as well, or be ranked in the other criteria only, without a Score.", "measures that need it have no value"),
    Code("F241", "line too long", "error", "leave simulation out: the debate need not be repeated.", "all judgments of that debate are no"),
)  # fmt: skip
LEADERBOARDS = (
    Code("F242", "not a line of a leaderboard", "error", "write the columns of the task's format, one value a line.", "the line is left out"),
    Code("F243", "value is not a finite number", "error", "write values as decimal numbers such as 0.25.", "the line is left out"),
    Code("F244", "value given twice", "error", "write one value per run, topic and measure.", "the first value counts"),
    Code("F245", "run missing in the leaderboard", "error", "give every run of the task a value.", "the run is left out; over too few runs the correlation is 0"),
    Code("F246", "run left out or counted 0", "warning", "give every run of the task a value."),
    Code("F247", "unknown run", "warning", "leave out what is no run of the task: it is not looked at."),
    Code("F248", "measure missing", "error", "give the measure that the task asks for.", "the correlation is 0"),
    Code("F249", "no value over all topics", "warning", "write a line with the topic all for every run and measure: the mean over topics was taken."),
    Code("F250", "all runs have the same value", "warning", "tell the runs apart: without an order the correlation counts 0.", "the correlation is 0"),
)  # fmt: skip
CODES = (*LINES, *JUDGMENTS, *LEADERBOARDS)
