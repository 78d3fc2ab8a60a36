import common

lines = common.good_lines()
lines[9] = lines[9].replace(f" {lines[9].split()[2]} ", " doc-0 ")
common.write(lines)
