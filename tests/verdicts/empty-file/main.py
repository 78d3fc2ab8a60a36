import common

common.write("")
