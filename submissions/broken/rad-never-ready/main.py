"""Loads something for ever, as servers do that wait for a network that is not there."""

import time

print("loading the model", flush=True)
time.sleep(3600)
