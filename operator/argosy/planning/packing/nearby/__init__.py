"""Few replicas next to many that stay: they are placed on a part of the pool's nodes, with no more GPUs than all of
them would take.
"""
