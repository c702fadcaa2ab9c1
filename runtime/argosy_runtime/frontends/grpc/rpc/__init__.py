"""gRPC over HTTP/2 for a server: calls, their messages, metadata, statuses, and where calls go."""
