"""Comparison of two versions' responses to one request. *Pure*: it reads tensors, and knows no server."""
