"""Commands that serve and build on this machine."""
