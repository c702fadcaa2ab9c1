"""Adapters among the models of a server: loaded into their base model, as folders of a repository or its own list."""
