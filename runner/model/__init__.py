"""Data and pure rules that everything else stands on: no files, no engine, no database."""
