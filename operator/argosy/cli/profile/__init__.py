"""`argosy profile`: what a model needs, and which settings suit it."""
