"""Views of `argosy up`: rows as values, lines for logs, a live table for terminals."""
