"""Talks to a Kubernetes API server: reads what is there, applies what should be. Nothing here decides.

`client` is the connection, `cache` what is known by watches, `apply` what is written, `leader` who may write.
"""
