"""Reconciling one server's models: the agent and its loop, its ledger, and the server's control protocol."""
