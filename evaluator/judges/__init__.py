"""Who answers the questions of an evaluation: models behind an endpoint, an offline judge, people's labels."""
