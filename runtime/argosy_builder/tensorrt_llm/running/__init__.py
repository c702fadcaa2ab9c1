"""What answers for the accuracy gate: the checkpoint as it came, an engine, a checkpoint of the engine-less path."""

from .runners import opened

__all__ = ["opened"]
