"""The commands of ``evaluator`` that are for every kind; a kind's own are in its folder."""
