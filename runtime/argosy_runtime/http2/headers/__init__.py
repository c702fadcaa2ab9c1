"""Header blocks as heads of requests, and as heads and trailers of responses."""
