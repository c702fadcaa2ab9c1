"""The server's service without a protocol: what front ends, and running models that call others, ask of it."""

from .plane import EXTENSIONS, SERVER_NAME, DataPlane

__all__ = ["EXTENSIONS", "SERVER_NAME", "DataPlane"]
