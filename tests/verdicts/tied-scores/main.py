import common

common.write([" ".join([*line.split()[:4], "1.0", "case"]) for line in common.good_lines(50)])
