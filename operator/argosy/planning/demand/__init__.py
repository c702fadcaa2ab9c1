"""The demand of a pool: footprints, groups of models that share a server, replicas."""
