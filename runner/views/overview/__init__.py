"""A task for those who take part: its rules, inputs, output and measures, on one screen and in its README."""
