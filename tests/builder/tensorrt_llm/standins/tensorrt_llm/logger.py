class Logger:
    def set_level(self, level: str) -> None:
        assert level in ("internal_error", "error", "warning", "info", "verbose", "debug", "trace")


logger = Logger()
