"""What an engine brings: builds by ONNX Runtime and AOTInductor, timed against the file that each was made from.

Both answer in turns, through the backends that serve them.
"""
