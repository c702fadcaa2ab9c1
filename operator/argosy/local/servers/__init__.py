"""The servers of this machine, each with its agent: how they are started, and where they listen."""
