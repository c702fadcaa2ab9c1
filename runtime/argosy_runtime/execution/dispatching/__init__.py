"""Dispatchers of model versions: requests in, batches to free instances, responses out.

Under a rate limiter, a dispatcher's free instances are those that hold a grant.
"""
