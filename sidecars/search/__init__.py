"""The argument index: the part of Elasticsearch's search interface that debate software uses, over tantivy and numpy.

``python -m sidecars.search serve | prepare``; docs/reference/search.md says what is understood, with which
parameters texts are analysed and scored, and what differs from Elasticsearch. Deny by default: a request with
anything that is not understood is refused in Elasticsearch's own error shape, never answered approximately.
"""

from __future__ import annotations
