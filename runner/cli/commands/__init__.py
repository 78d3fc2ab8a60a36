"""The commands: one module for each noun. None imports another; what they share lies beside this folder."""
