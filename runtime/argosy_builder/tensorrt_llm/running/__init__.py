"""Runners for the accuracy gate: the model's own checkpoint, an engine, a checkpoint of the engine-less path."""

from .runners import opened

__all__ = ["opened"]
