"""What teams write: reading submission.yaml, packing it to travel, and taking it in."""
