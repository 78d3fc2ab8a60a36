"""Tests of the whole: real containers, a real browser. Nothing is left out where something is missing; it fails."""
