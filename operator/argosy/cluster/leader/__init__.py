"""Which replica acts: leader election on a Lease.

What may live here: the rules of the Lease, and their execution. It knows nothing of what a leader does.
"""
