"""Reading large TREC runs with numpy: a block of lines at a time, as bytes, offsets and 64-bit words."""
