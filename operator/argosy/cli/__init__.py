"""The `argosy` command line: each subcommand reads its arguments, delegates and prints.

`local`: what runs on this machine. `planning`, `simulation`: what would happen, with nothing started. `cluster`: the
operator, and a pool's engine cache. `generated`: files that are generated from code.
"""
