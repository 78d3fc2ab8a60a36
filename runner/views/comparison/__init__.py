"""Two runs beside each other: topic by topic, and what is inside them; as text, JSON and a page."""
