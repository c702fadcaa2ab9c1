"""What the tests declare: Argosy's resources, the example's, models that are trained on the way.

What may live here: values made from nothing but their arguments and the repository's files; nothing that knows a
cluster.
"""
