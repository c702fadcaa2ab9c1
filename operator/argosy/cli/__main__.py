"""`python -m argosy.cli`: the command line without its script on the PATH."""

from argosy.cli.main import main

main()
