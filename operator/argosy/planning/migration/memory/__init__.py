"""A server's GPU memory during a migration: loaded models, additional ones, and changes that wait for memory."""
