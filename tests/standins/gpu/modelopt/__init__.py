"""A stand-in for NVIDIA's ModelOpt: what of it the builder calls, with the signatures of release 0.47."""
