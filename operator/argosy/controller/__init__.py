"""The controller: from events to rounds, and from a round to what is written.

What may live here: the workqueue, the store of declared resources, the reconciler that runs `reconcile` for one pool,
Kubernetes Events, health and metrics of the process, and the process itself. It knows no kopf: what tells of resources
comes in by the Protocol in `feed`.
"""
