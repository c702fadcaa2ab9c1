"""What a sweep over batch sizes and instances says of a model: its knee, and settings for a latency budget. Pure."""
