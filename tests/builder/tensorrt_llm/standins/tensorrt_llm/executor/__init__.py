class CppExecutorError(RuntimeError):
    """The executor ended."""
