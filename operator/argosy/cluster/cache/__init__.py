"""Informers: caches of cluster objects, filled by lists and watches, with only the needed parts of each object.

What may live here: the reflector, the cached form of each kind of object, and views of it. It writes nothing.
"""
