"""Measures over records: each module has some, ``named`` finds them by their strings, ``base`` says what a measure is."""
