"""What a plan says of itself, as `argosy plan` prints it: remedies, and why each model is where it is."""
