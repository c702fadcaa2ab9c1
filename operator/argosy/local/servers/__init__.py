"""The servers of this machine: which there are, each with its agent, how one is started, and where it listens."""
