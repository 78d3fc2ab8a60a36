"""Benchmarks: what the evaluator costs beside the tools that people would use instead."""
