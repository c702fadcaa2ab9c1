"""Stand-ins for machines that are not there: GPUs that exist on paper, nodes and kubelets that are played.

What may live here: what a cluster that stands is told of such machines, and what plays them. The cluster itself knows
nothing of it.
"""
