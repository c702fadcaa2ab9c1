"""What the tests ask, and of whom: the API server by kubectl and by a watch, the models' servers from a Pod.

What may live here: such questions, what runs in the Pod that asks, and the waiting for answers; nothing that installs
anything.
"""
