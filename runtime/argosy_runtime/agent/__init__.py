"""Brings models to a server: storage → verified local copy → load and unload over the public V2 control protocol.

What may live here: what a server should hold and what it says of itself (`contract`, pure), copies of model files
(storage, cache), the repository folder, and the loop that makes the one into the other. It serves the bundled
runtime and NVIDIA's Triton alike, so nothing here knows a server beyond its public protocol, and nothing here
imports the server. It runs beside a server in a Pod, and inside `argosy up`.
"""
