import common

lines = common.good_lines()
lines[4] = lines[4].replace(lines[4].split()[2], lines[1].split()[2])
common.write(lines)
