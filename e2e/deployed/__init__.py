"""What the tests put on the cluster before they ask anything of it.

What may live here: our images, the chart's release, and the real programs that work beside it, with what runs in their
Pods. The storage has a package of its own.
"""
