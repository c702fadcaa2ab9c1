"""The bodies of requests, declared field by field."""
