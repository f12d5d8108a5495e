"""From a plan to the command that starts it, and from a command back to the plan."""
