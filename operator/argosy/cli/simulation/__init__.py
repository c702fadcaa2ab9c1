"""`argosy simulate`: its inputs, and the result for programs, for people at a terminal, and as a picture."""
