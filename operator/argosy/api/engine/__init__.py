"""What a model says of the engine to build from it: the compiler and its options, the accuracy it must keep."""
