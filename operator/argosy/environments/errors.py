"""The error of this package."""


class EnvironmentFailedError(Exception):
    """An engine environment cannot be made, with the reason and the way out."""
