import common

common.write("mine", "../input/queries.jsonl")
