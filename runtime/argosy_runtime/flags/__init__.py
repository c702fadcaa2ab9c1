"""tritonserver's command line, as this server takes it."""

from .options import ServerOptions, parse
from .parser import argument_parser
from .without_effect import WITHOUT_EFFECT

__all__ = ["WITHOUT_EFFECT", "ServerOptions", "argument_parser", "parse"]
