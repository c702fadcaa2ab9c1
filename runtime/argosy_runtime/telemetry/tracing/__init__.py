"""Tracing: which requests are traced (`settings`), what becomes of what was traced (`files`, `spans`), and the thread
that does it (`writer`). `tracer` is the interface of the data plane.
"""
