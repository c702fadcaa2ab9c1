"""The parts of a model's and an ensemble's spec, one idea a module."""
