"""The long-running coordinator: accounts, the inbox, evaluating, and what is published."""
