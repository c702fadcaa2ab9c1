"""What an exception of a model, or of its framework, means: want of memory, or an error of its device."""
