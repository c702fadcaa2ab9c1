"""Data to calibrate with and to compare on: files become samples, whatever asks for them.

`samples`: what a sample is and how a folder is read. `readers`: the formats of files. Nothing here knows a builder or a
metric.
"""

from .samples import Purpose, Samples, read_samples

__all__ = ["Purpose", "Samples", "read_samples"]
