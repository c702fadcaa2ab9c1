"""The fleet that `argosy plan` plans: from files or a cluster, with what runs there and what is tried."""
