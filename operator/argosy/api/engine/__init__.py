"""The engine to build from a model: its compiler and options, and the accuracy that it must reach."""
