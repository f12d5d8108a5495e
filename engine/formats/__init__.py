"""Weight formats, KV dtypes and GGUF types: how many bytes a shape takes when stored."""
