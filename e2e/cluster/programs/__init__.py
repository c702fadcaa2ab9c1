"""What a cluster is made of, before it is started.

What may live here: where Kubernetes' own programs and Debian's packages come from, and what brings them; nothing that
starts one.
"""
