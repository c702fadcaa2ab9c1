"""Loading on demand: the first request for a model loads it, and idle models give way to it (`--load-on-demand`).

`eviction` decides which models give way, `waiting` keeps requests until their model serves, `loads` runs both.
"""
