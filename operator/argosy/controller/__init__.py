"""The controller: from events to rounds, and from a round to writes.

What may live here: the workqueue, the store of declared resources, the reconciler that runs `reconcile` for one pool,
Kubernetes Events, health and metrics of the process, and the process itself. It does not
import kopf: resources come from the feed in `resources`.
"""
