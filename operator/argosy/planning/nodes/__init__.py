"""A Kubernetes Node as packing sees it: parsed, judged ready, chosen by a pool, less the GPUs that others hold."""
