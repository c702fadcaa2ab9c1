"""What the signals of a candidate prove: evidence since a step began, statistical tests, and the verdict. Pure."""
