"""What lies in artefact stores, and how it gets there and back."""
