"""End-to-end tests and the tools that give them something real to run on. Nothing here is installed with Argosy."""
