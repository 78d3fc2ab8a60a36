"""From stored judgments to scores: one report, a run over its topics, and what is written about them."""
