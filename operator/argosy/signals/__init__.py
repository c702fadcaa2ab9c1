"""Readings of a pool's servers, from a Prometheus or from the servers themselves: the only code that reads metrics over
the network. It makes no decisions and no arithmetic: that is in `autoscaling/metrics`.
"""
