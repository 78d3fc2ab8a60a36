import common

common.write("\ufeff" + "\n".join(common.good_lines()) + "\n")
