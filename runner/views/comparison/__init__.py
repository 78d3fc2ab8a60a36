"""Two runs beside each other: topic by topic, what they retrieved, what is inside them; as text, JSON and a page."""
