"""A plan as a picture (SVG)."""
