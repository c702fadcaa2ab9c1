"""Rules that the operator, the agent, the builder and the server share, each a module that imports nothing of ours."""
