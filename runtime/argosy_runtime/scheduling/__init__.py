"""When and together with what a request runs, as pure state machines.

Time is an argument, in nanoseconds; nothing here reads a clock, waits, or knows of threads, processes or sockets. A
scheduler is told of arrivals (`submit`), asked what may run (`advance`), and says when it wants to be asked again.
"""
