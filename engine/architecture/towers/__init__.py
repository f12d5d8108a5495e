"""What a model has beside its text part: vision and audio towers with their projectors."""
