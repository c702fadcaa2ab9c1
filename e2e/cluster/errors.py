"""What a caller may want to catch."""


class ClusterUnavailableError(Exception):
    """No cluster can be had on this machine. The message says why and what would help; tests turn it into a skip."""


class ClusterError(Exception):
    """A cluster that should work does not: a process died, or something did not become ready in time."""
