"""The replacement of the revision that serves by a new one: steps, mirroring, sticky requests and analysis."""
