"""What is learnt of signals and remembered between two decisions."""
