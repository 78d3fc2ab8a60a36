"""The commands: one module for each noun. None imports another; what they share is in the folder above."""
