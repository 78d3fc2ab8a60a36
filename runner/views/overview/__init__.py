"""A task for those who take part: its rules, inputs, output and measures, on a terminal and on its page."""
