"""The commands of ``runner``: one module for each noun, and what they print."""
