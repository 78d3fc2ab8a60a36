"""A kind of task: which colour has each topic? A run has a line a topic, with the topic and a colour."""
