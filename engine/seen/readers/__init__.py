"""One module per runtime: what its endpoint says, in our words and in bytes."""
