"""What becomes of tests that lack a program: it is brought, or they are skipped, or they fail."""

import pytest
from e2e.cluster.policy import Machine, Source, Verdict, sources, verdict
from e2e.starting import give_up


def machine(*, ci: bool = False, root: bool = True, build: bool = False, assets: bool = False) -> Machine:
    return Machine(ci=ci, root=root, build=build, assets=assets)


@pytest.mark.parametrize(
    ("here", "node", "expected"),
    [
        (machine(), False, "cache, tarball, upstream"),
        (machine(), True, "cache, tarball"),
        (machine(root=False), False, "cache, tarball, upstream"),
        (machine(assets=True), False, "KUBEBUILDER_ASSETS, cache, tarball, upstream"),
        (machine(build=True), True, "cache, tarball, Debian's sources"),
        (machine(ci=True), True, "cache, tarball, Debian's sources"),
        (machine(ci=True), False, "cache, tarball, upstream, Debian's sources"),
        (machine(ci=True, root=False, assets=True), False,
         "KUBEBUILDER_ASSETS, cache, tarball, upstream, Debian's sources"),
    ],
)  # fmt: skip
def test_the_order_in_which_kubernetes_is_looked_for(here: Machine, node: bool, expected: str) -> None:
    assert ", ".join(sources(here, node=node)) == expected


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("build", [True, False])
def test_in_ci_the_last_resort_is_a_build_and_nothing_is_skipped(root: bool, build: bool) -> None:
    here = machine(ci=True, root=root, build=build)
    assert sources(here, node=True)[-1] is Source.DEBIAN
    outcome, line = verdict(here, "no kubelet:\n  looked everywhere")
    assert outcome is Verdict.FAIL
    assert line == "CI=true skips nothing: no kubelet: looked everywhere"


@pytest.mark.parametrize("root", [True, False])
def test_otherwise_one_line_says_why_it_is_skipped_and_how_it_would_run(root: bool) -> None:
    outcome, line = verdict(machine(root=root), "no kubelet:\n  looked everywhere")
    assert outcome is Verdict.SKIP
    assert line.startswith("no kubelet: looked everywhere (CI=true brings what is missing")
    assert "\n" not in line
    assert line.endswith(", as root)") is not root


def test_what_nothing_can_bring_is_reported_as_it_is() -> None:
    assert verdict(machine(), "port 8000 is taken", may_be_brought=False) == (Verdict.SKIP, "port 8000 is taken")
    assert verdict(machine(ci=True), "port 8000 is taken", may_be_brought=False)[0] is Verdict.FAIL


@pytest.mark.parametrize(
    ("environment", "ci", "build", "assets"),
    [
        ({}, False, False, False),
        ({"CI": "true", "ARGOSY_KUBE_BUILD": "1", "KUBEBUILDER_ASSETS": "/bin"}, True, True, True),
        ({"CI": "false", "ARGOSY_KUBE_BUILD": "0", "KUBEBUILDER_ASSETS": ""}, False, False, False),
    ],
)
def test_the_environment_says_what_may_be_done(
    environment: dict[str, str], ci: bool, build: bool, assets: bool
) -> None:
    here = Machine.here(environment)
    assert (here.ci, here.build, here.assets) == (ci, build, assets)


def test_a_test_is_skipped_or_fails_accordingly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"no wheel \(CI=true brings what is missing"):
        give_up("no wheel")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI=true skips nothing: no wheel"):
        give_up("no wheel")
