"""JavaScript of others, as its npm packages have it: versions and hashes in ``vendor.json``, fetched and checked by `make vendor`."""
