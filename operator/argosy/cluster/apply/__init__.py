"""Writes to the cluster what was decided: objects and statuses by server-side apply, what Pods may be asked for.

What may live here: what is sent and in which order, and what an API server's refusals mean. It decides nothing.
"""
