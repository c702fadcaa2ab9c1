"""Proof: the fewest GPUs of a plan by CP-SAT (OR-Tools), and a better plan where there is one."""
