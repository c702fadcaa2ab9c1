"""What statuses report of measurements that decide nothing, and what a new operator process restores from them."""
