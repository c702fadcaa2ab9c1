"""What the cluster holds, kept known by lists and watches: informers, with as little of each object as is needed.

What may live here: the reflector, what is kept of each kind of object, and what is read out of it. It writes nothing.
"""
