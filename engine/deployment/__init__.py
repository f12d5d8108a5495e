"""How a model is to be run: the user's choices, one frozen value."""
