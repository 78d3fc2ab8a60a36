import common

lines = common.good_lines()
lines[7] = lines[7].replace(" Q0 ", " Q0 doc ")
common.write(lines)
