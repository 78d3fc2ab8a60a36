"""Who can be asked about reports apart from a model: people's files, and the offline judge that needs neither key nor network."""
