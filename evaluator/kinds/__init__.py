"""The kinds of tasks, a folder each: ``kind`` (what evaluates), ``codes`` (findings), ``command`` (commands of its own)."""
