"""Two to eight runs beside each other: topic by topic, what they retrieved, what is inside two; as text, JSON and a page."""
