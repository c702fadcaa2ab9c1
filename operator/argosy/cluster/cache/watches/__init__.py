"""Lists and watches, restarted after errors."""
