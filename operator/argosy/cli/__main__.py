"""`python -m argosy.cli`: the command line where its script is not on the PATH."""

from argosy.cli.main import main

main()
