import common

common.write([line.replace("case", "\x1b[2J\x1b]0;owned\x07") for line in common.good_lines()])
