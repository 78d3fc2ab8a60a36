"""Who can be asked about reports beside a model: people's files, and the offline judge that needs neither key nor network."""
