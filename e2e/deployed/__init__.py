"""Objects that the tests create on the cluster before they send requests.

Our images, the chart's release, and the real programs that work next to it, with what runs in their Pods.
The storage has a package of its own.
"""
