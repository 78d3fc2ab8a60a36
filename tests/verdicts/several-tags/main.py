import common

lines = common.good_lines()
half = len(lines) // 2
common.write(lines[:half] + [line.replace("case", "other") for line in lines[half:]])
