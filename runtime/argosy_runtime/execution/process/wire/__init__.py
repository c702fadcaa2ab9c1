"""The exchange of the server with a model's process: frames, their content, memory that both have mapped.

What may live here: what both sides know. It knows neither of them, nor sockets and event loops.
"""
