"""Scheduling of requests, as pure state machines: when one runs, and together with which others.

Time is an argument, in nanoseconds; nothing here reads a clock, waits, or depends on threads, processes or sockets. A
scheduler takes arrivals (`submit`), decides what runs (`advance`), and returns when it wants to decide again.
"""
