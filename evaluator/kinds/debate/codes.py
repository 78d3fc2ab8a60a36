"""What can be wrong with debates."""

from evaluator.codes import Code

CODES = (
    Code("F201", "debate failed", "defect", "answer every request: the whole debate scores 0.", "the debate scores 0"),
    Code("F202", "turn not answered", "defect", "answer every request in time with status 200 and a JSON object with content: the turn scores 0.", "the turn scores 0"),
    Code("F203", "debate missing", "defect", "write one line for every claim, in the order of the claims.", "the debate scores 0"),
    Code("F204", "debate of no claim", "error", "write debates about the claims of this dataset only.", "it is left out"),
    Code("F205", "claim debated too often", "error", "write one line for every claim.", "it is left out"),
    Code("F206", "debates in another order", "warning", "write the debates in the order of the claims."),
    Code("F207", "answer over the word limit", "warning", "shorten the answer: words are what a reader sees between blanks."),
    Code("F208", "argument is not in the index", "warning", "list only arguments of the index, with their ids as given."),
    Code("F209", "argument with another text", "warning", "give the texts of arguments as the index has them."),
    Code("F210", "argument was not retrieved", "warning", "list only arguments that the index returned to this software."),
    Code("F211", "argument without text", "warning", "give every argument its text: those who judge need it."),
    Code("F212", "many arguments", "warning", "list only the arguments that the answer rests on.", "those beyond the limit are not in order (provenance) and ground nothing"),
    Code("F213", "argument that cannot be read", "warning", 'list arguments as objects with an id: {"id": "4711.12", "text": "..."}.'),
    Code("F214", "not a debate", "error", 'write one debate a line: {"simulation": {"userTurns": [...]}}.', "the line is left out"),
    Code("F215", "line too long", "error", "write one debate a line, and shorter answers.", "the line is left out"),
    Code("F216", "part of a debate was left out", "warning", "write shorter answers with fewer arguments."),
    Code("F217", "turn missing", "defect", "hold as many turns as the task has: turns that are not there score 0.", "the missing turns score 0"),
    Code("F218", "more turns than the task has", "warning", "hold as many turns as the task has: the others do not count.", "the first ones count"),
    Code("F219", "answer is there twice, and differs", "warning", "write response.content also as utterance."),
    Code("F220", "record of the index is not complete", "warning", "send fewer requests to the index: arguments that are not in the record count as not retrieved."),
    Code("F221", "record of turns does not fit", "warning", "nothing to correct in the run; times are taken from the debates."),
    Code("F222", "argument listed twice", "warning", "list every argument of an answer once."),
    Code("F223", "no verdict from the judge", "warning", "write answers that can be judged: without a verdict, it is no.", "it is no"),
    Code("F224", "answer cut for the judge", "warning", "write shorter answers: the judge reads the beginning only."),
    Code("F225", "very long word", "warning", "write words between blanks."),
    Code("F226", "question refused by the judge's endpoint", "warning", "keep to the subject: endpoints may filter what they are asked; without a verdict, it is no.", "it is no"),
    Code("F227", "answer speaks to the judge", "warning", "write for the user, not for whoever judges. Found by patterns: an answer about such texts may be meant too."),
)  # fmt: skip
