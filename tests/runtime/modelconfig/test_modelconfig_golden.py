"""Golden folders: tests/data/modelconfig/<case>/{config.pbtxt, expected.json or violations.txt}.

`expected.json` is the normalized configuration on a machine with GPUs 0 and 1, as /v2/models/m/config answers it.
`violations.txt` holds one violation a line. Run this file with python to regenerate them,
then read the difference.
"""

import json
from pathlib import Path

import pytest

from argosy_runtime.modelconfig import check, normalize, parse_text, to_json

DATA = Path(__file__).parents[2] / "data" / "modelconfig"
CASES = sorted(path.name for path in DATA.iterdir() if path.is_dir())


def outcome(case: str) -> tuple[str, str]:
    """Return the file in which the case's outcome belongs, and its text."""
    full = normalize(parse_text((DATA / case / "config.pbtxt").read_text()), case, gpus=[0, 1])
    violations = check(full, case)
    if violations:
        return "violations.txt", "".join(f"{violation}\n" for violation in violations)
    return "expected.json", json.dumps(to_json(full), indent=2) + "\n"


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str) -> None:
    name, text = outcome(case)
    assert (DATA / case / name).read_text() == text
    other = {"violations.txt": "expected.json", "expected.json": "violations.txt"}[name]
    assert not (DATA / case / other).exists()


def test_there_are_cases_of_both_outcomes() -> None:
    assert {outcome(case)[0] for case in CASES} == {"expected.json", "violations.txt"}


if __name__ == "__main__":
    for name in CASES:
        file, content = outcome(name)
        (DATA / name / file).write_text(content)
