"""`python -m argosy_agent`: the parent that keeps the agent running."""

import logging
import sys

from argosy_agent.sync.supervisor import Supervisor

from .flags import LOG_FORMAT, parse


def main() -> int:
    """Check the command line, then run the agent with it until a signal comes. The exit code."""
    arguments = sys.argv[1:]
    flags = parse(arguments)
    logging.basicConfig(level=flags.log.upper(), format=LOG_FORMAT)
    return Supervisor((sys.executable, "-m", "argosy_agent.run", *arguments)).run()


if __name__ == "__main__":
    sys.exit(main())
