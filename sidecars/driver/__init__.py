"""The debate controller: it talks to the software and to the simulated user, and writes down what was said."""
