"""What is counted of copies that are sent to a shadow, and the metrics made of it."""
