"""The machine contract: requests in, answers out, and their JSON Schema."""
