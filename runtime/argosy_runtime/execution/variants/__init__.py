"""Requests of routed models: the regimes of `scheduling.variants` with real models, woken and put to sleep."""
