"""Measures: from what was read and the truths to figures; formulas name their source."""
