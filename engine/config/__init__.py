"""Stage: raw config mapping -> typed access with the origin of every value."""
