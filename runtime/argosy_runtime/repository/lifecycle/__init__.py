"""Models come, change and go: loads and unloads with all that follows from them, down to the load of one version."""
