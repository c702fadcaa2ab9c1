"""A server's Deployment and its Pod: containers, volumes, how it ends, what users lay over it."""
