"""The choice of each next token in the library's continuous batching."""
