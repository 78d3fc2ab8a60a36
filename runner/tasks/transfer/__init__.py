"""Files of datasets that come from elsewhere, and those that are offered to others."""
