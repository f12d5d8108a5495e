"""Stage: config -> architecture."""
