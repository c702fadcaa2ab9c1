"""What statuses are made from: the plan of a pool next to what its servers report, and the part of one member."""
