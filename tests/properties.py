"""How property tests run: profiles of hypothesis, which `pytest --hypothesis-profile=NAME` chooses.

`dev`, the default, tries other examples in each run. `ci`, the default under CI=true, tries half as many, the same ones
in each run: a change is not judged by examples that only its run drew. `thorough` tries ten times as many.
"""

import os
from typing import Any

from hypothesis import settings

_DEFAULT_EXAMPLES = 100


def load_profiles() -> None:
    """Register the profiles and load the default one. Deadlines are off: they measure how busy the machine is."""
    settings.register_profile("dev", derandomize=False, deadline=None, max_examples=_DEFAULT_EXAMPLES)
    settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, max_examples=_DEFAULT_EXAMPLES // 2)
    settings.register_profile("thorough", settings.get_profile("dev"), max_examples=10 * _DEFAULT_EXAMPLES)
    settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")


def examples(count: int, **others: Any) -> settings:
    """Return settings of so many examples, scaled by the profile; `others` are settings of hypothesis."""
    return settings(max_examples=count * settings().max_examples // _DEFAULT_EXAMPLES, **others)
