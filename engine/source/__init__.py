"""Stage: a reference (id, path, URL) -> a raw model. The only door to disk and Hub."""
