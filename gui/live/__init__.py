"""The room that shows what is really held, by whom, and records it."""
