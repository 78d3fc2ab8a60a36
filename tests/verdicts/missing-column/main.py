import common

lines = common.good_lines()
lines[7] = lines[7].removesuffix(" case")
common.write(lines)
