"""Room 1: find a model."""
