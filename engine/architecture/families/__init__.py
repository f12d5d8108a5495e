"""Model families: what distinguishes each from a plain Llama."""
