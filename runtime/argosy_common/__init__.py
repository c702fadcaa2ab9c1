"""Rules that the agent follows too, each a module that imports nothing of ours."""
