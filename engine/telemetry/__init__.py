"""What devices really hold now. Each adapter is the only importer of its binding."""
