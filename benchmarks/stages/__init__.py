"""`python -m benchmarks.stages`: what each stage of a request's way costs, in microseconds of CPU time.

The server's own objects, from the front end's protocol to the model's process and back, stand in one process and one
thread; in the place of sockets are objects that keep what is written to them. One clock runs all the time, for exactly
one stage. What is measured is Python's part: the kernel's and the event loop's are the rest of what `benchmarks.triton`
measures.
"""
