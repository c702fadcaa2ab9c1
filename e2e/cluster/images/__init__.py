"""Images without a registry.

What may live here: how images are built on this machine, what they are built from (the base image, this machine's
package index), and how the node gets them; nothing of what is in a certain image.
"""
