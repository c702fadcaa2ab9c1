"""Requests of routed models: the regimes of `argosy_common.regimes` with real models, woken and put to sleep."""
