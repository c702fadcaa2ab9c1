"""Engine builds on this machine: processes, one at a time, each with a folder of its own.

`command`: how a builder is started. `build`: one build over its tries. `runner`: which build runs. `rows`: builds as
they are shown. `session`: `argosy build`. Which engines to build is decided by `planning.builds`.
"""
