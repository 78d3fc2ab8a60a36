"""The gateway: the only container with a network. It holds the key and asks the configured models, nobody else.

What comes in is read, checked against an allow-list and written anew, so nothing that a client or a participant wrote
can choose host, model, header or parameter. What comes out is reduced to a text and its counts.
"""
