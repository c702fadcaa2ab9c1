"""A web server with models, for Pods to fetch them from; it can also fail in each way that storage does.

What may live here: the server, which runs alone in an image of its own, and what puts it into the cluster.
"""
