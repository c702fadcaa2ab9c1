"""What the statuses say of places that went to a higher priority."""
