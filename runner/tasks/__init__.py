"""What organisers write: reading task.yaml, checking it, and the files that it names."""
