"""What a pool is asked to serve: footprints, groups of models that share a server, replicas."""
