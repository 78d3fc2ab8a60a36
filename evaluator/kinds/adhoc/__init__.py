"""Ad-hoc retrieval: rankings of documents in TREC's format."""
