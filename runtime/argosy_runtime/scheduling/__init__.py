"""When and together with what a request runs, as pure state machines.

Time is an argument, in nanoseconds; nothing here reads a clock, waits, or depends on threads, processes or sockets. A
scheduler takes arrivals (`submit`), decides what runs (`advance`), and returns when it wants to decide again.
"""
