"""What is wrong with resources together, and which form of each is acted upon."""
