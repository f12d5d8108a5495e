"""The room of a run: its log, what it states against the plan, and why it failed."""
