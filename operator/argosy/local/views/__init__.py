"""How `argosy up` shows what it does: rows as values, lines for logs, a live table for terminals."""
