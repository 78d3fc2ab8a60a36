"""The script that people write by hand: load a run into dictionaries, give it to pytrec_eval, print means."""

import sys

import pytrec_eval

NAMES = {"ndcg_cut_5", "ndcg_cut_10", "map", "recip_rank", "P_10", "recall_1000"}


def main(qrels_path: str, run_path: str) -> None:
    """Print the mean of each measure over the topics of the judgements."""
    qrels: dict[str, dict[str, int]] = {}
    with open(qrels_path) as file:  # noqa: PTH123
        for line in file:
            topic, _, doc, grade = line.split()
            qrels.setdefault(topic, {})[doc] = int(grade)
    run: dict[str, dict[str, float]] = {}
    with open(run_path) as file:  # noqa: PTH123
        for line in file:
            topic, _, doc, _, score, _ = line.split()
            run.setdefault(topic, {})[doc] = float(score)
    values = pytrec_eval.RelevanceEvaluator(qrels, NAMES).evaluate(run)
    for name in sorted(NAMES):
        print(name, sum(by_name[name] for by_name in values.values()) / len(qrels))


if __name__ == "__main__":
    main(*sys.argv[1:3])
