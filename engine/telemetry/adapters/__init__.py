"""One module per source; each is the only importer of its binding."""
