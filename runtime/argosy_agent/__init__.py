"""Brings models to a server, the bundled one and NVIDIA's Triton alike, of which it knows the public protocol alone.

It runs beside a server in a Pod (`python -m argosy_agent`), and inside `argosy up`. Its rooms, each importing only
those behind it: `sync` makes a server what it should be and `sources` says what that is and takes the report;
`exchange` is what they agree on; `folder` is what the server reads, `cache` the copies of model files, `transfer` how
these come from where they are stored; `contract` is what operator and agent say to each other.
"""
