import common

first = common.topics()[0]
common.write([line for line in common.good_lines() if line.split()[0] != first])
