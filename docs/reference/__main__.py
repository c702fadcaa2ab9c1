"""`python -m docs.reference`: write the pages made from the models, the flags and the options; --check compares."""

import sys
from pathlib import Path

import typer
from docs.reference.deviations import deviations_page
from docs.reference.flags import flags_page
from docs.reference.options import options_page
from docs.reference.resources import resource_pages
from docs.reference.rollouts import rollouts_page

from argosy.cli.generated import Generated

FOLDER = Path(__file__).parent


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    return {
        **resource_pages(),
        "server-flags.md": flags_page(),
        "engine-options.md": options_page(),
        "rollout-states.md": rollouts_page(),
        "triton-deviations.md": deviations_page(),
    }


def main(arguments: list[str]) -> None:
    """Write the pages, or with --check show how they differ. Raises typer.Exit with 1 where one does."""
    if unknown := set(arguments) - {"--check"}:
        raise SystemExit(f"unknown arguments: {' '.join(sorted(unknown))}")
    generated = Generated(pages(), "*.md", "the code", "python -m docs.reference")
    (generated.check if arguments else generated.write)([FOLDER])


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except typer.Exit as end:
        sys.exit(end.exit_code)
