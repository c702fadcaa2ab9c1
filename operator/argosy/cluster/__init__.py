"""The Kubernetes API: reads and applies objects. Nothing here decides.

`client`: the connection; `cache`: informers; `apply`: server-side apply; `leader`: leader election.
"""
