"""`python -m argosy_runtime.agent`: the parent that keeps the agent running."""

import logging
import sys

from .flags import LOG_FORMAT, parse
from .supervise import Supervisor


def main() -> int:
    """Check the command line, then run the agent with it until a signal comes. The exit code."""
    arguments = sys.argv[1:]
    flags = parse(arguments)
    logging.basicConfig(level=flags.log.upper(), format=LOG_FORMAT)
    return Supervisor((sys.executable, "-m", "argosy_runtime.agent.run", *arguments)).run()


if __name__ == "__main__":
    sys.exit(main())
