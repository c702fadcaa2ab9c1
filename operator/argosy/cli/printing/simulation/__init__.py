"""What came of a simulation: for programs, for people at a terminal, and as a picture."""
