"""Writes: objects and statuses by server-side apply, Pods' routes by patches.

What may live here: what is sent and in which order, and what an API server's refusals mean. It decides nothing.
"""
