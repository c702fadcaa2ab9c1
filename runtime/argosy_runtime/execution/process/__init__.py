"""Models in processes of their own: the server's side of an instance, the process itself, `wire` between them."""
