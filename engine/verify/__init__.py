"""Our parameters against those of the model itself, built without weights by transformers."""
