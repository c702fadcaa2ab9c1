"""The start of the `argosy` command line, which an interrupt ends without a traceback from the first import on."""

import signal
import sys


def main() -> None:
    """Run the command line. Modules of other subcommands are not loaded, which halves a server's start."""
    catches = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not in a background job of a shell
    if catches:
        # imports take half a second, and nothing has been started that would have to be stopped
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from argosy.cli.application import COMMANDS, application

    first = sys.argv[1:2]
    command = application(first if first and first[0] in COMMANDS else COMMANDS)
    if catches:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()
