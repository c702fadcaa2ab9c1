"""Copies of requests to a candidate version, whose answers are compared with the stable version's and dropped."""
