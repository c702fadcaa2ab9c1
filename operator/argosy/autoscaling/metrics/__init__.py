"""The metrics of servers over a window of time, as the values that scaling and bottlenecks are decided from. Pure: the
servers, or a Prometheus, are read by `argosy.signals`.
"""
