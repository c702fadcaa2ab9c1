"""Pure codecs between wire formats and `messages`: V2 JSON, the binary extension, gRPC, generate.

No I/O, no clock, no event loop. A codec never decides whether a model accepts a request; it only decodes and encodes.
Where it depends on the model (raw bodies, generate, classification) it gets a `ModelView`.
"""
