"""llama.cpp: every buffer it allocates, from a GGUF header or from a mix."""
