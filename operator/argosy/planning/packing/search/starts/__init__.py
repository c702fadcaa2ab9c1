"""Ways to fill a state: the first states of a search, of which the best is improved."""
