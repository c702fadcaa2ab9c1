"""Talks to a Kubernetes API server: reads what is there, applies what should be. The only importer of kubernetes.

What may live here: the connection, watches and what they know (`observe`), server-side apply, events, the leader's
lease. Nothing here decides: it carries out what `reconcile` and `render` made.
"""
