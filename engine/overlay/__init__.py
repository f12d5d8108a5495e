"""Stage: budget and telemetry -> what really happens, named after the plan's regions."""
