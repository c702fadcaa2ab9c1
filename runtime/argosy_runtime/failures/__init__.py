"""The meaning of exceptions of a model or its framework: out of memory, or an error of its device."""
