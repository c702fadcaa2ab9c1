"""What is wrong with resources together, and which spec of each is acted upon."""
