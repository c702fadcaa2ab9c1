"""The `argosy` command: each module is one subcommand, which reads its arguments, delegates and prints."""
