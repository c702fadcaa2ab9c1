"""The only place of the runtime with clocks, threads and processes.

A *dispatcher* (one per model version) feeds batches from the pure schedulers to *instances*; an instance runs a backend
on a thread of its own or in a process of its own. All of it but the worker and the threads runs on the server's event
loop.
"""
