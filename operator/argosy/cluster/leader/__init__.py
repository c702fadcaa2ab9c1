"""Leader election on a Lease.

What may live here: the rules of the Lease, and their execution. What a leader does is unknown here.
"""
