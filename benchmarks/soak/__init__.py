"""A server under everything at once, for a long time: what it gets wrong, loses and keeps."""
