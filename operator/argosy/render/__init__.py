"""Pure rendering: decisions become model repositories and Kubernetes objects.

Values in, values out: nothing here writes a file, reads a clock or sends a request. Each module renders one kind of
object.
"""
