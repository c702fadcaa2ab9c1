"""Rounds as documents: what a round saw and decided, so that the same decision can be reached elsewhere. Pure.

`codec`: values as plain JSON values, and back. `secrets`: which texts are replaced. `bundle`: the document of a round.
`differences`: two documents compared. `readings`: the verdicts that a bundle's readings become. `decisions`: a bundle
that is decided again. Only `folder` reads and writes files.
"""
