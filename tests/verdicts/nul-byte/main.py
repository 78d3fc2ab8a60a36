import common

lines = common.good_lines()
lines[5] = lines[5].replace("Q0 ", "Q0 \0")
common.write(lines)
