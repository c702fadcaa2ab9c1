"""PyTorch models compiled ahead of time: torch.export, then AOTInductor, into a package that needs no Python code.

What may live here: `settings` (what is asked, *pure*), `files` (which forms of a model there are), `exporting` and
`compiling` (run in processes of their own), `checking`, `running` for the gate. Option names are those of
`torch._inductor.config`, and `strict` of torch.export. The backend `pytorch` serves what is made.
"""

from .builder import AotInductorBuilder

BUILDER = AotInductorBuilder()

__all__ = ["BUILDER"]
