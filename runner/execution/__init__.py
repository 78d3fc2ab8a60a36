"""From the plan to sealed and evaluated attempts."""
