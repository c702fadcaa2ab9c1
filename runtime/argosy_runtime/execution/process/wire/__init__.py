"""What the server and a model's process write to each other: frames, what stands in them, memory that both have mapped.

What may live here: what both sides know. It knows neither of them, nor sockets and event loops.
"""
