"""Plots of leaderboards and runs: a module a kind makes its rows and words, and out of these an Altair (Vega-Lite) chart."""
