"""The readings that became a verdict, recorded so that it can be reached again from them elsewhere. Pure."""
