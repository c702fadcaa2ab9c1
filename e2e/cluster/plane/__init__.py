"""The control plane: etcd, API server, controller manager and scheduler, as plain processes.

What may live here: these processes, and what they and their callers are known by (certificates, kubeconfigs); nothing
of nodes.
"""
