"""modelopt's configurations are laid over one another in the form of either release: a dict, or since 0.44 a list."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

import pytest

from argosy_builder.contract import BuildError
from argosy_builder.tensorrt_llm.checkpoints.children import CACHES, CONFIGURATIONS, configuration_of

from .conftest import Standins

Modelopt = Callable[[str], Any]


@pytest.fixture
def modelopt(standins: Standins, monkeypatch: pytest.MonkeyPatch) -> Modelopt:
    """Return a function that imports the stand-in for a release of modelopt."""

    def imported(release: str) -> Any:
        standins.setenv("STANDIN_MODELOPT", release)
        for name in [name for name in sys.modules if name.partition(".")[0] == "modelopt"]:
            monkeypatch.delitem(sys.modules, name)
        return importlib.import_module("modelopt.torch.quantization")

    return imported


@pytest.mark.parametrize("release", ["0.37", "0.47"])
@pytest.mark.parametrize("qformat", CONFIGURATIONS)
@pytest.mark.parametrize("cache", [None, *CACHES])
def test_the_cache_and_the_block_size_are_laid_over(
    release: str, qformat: str, cache: str | None, modelopt: Modelopt
) -> None:
    mtq = modelopt(release)
    block = 64 if "awq" in qformat else 0
    configuration = configuration_of(mtq, qformat, cache, block)
    weights = mtq.effective(configuration, mtq.WEIGHTS)
    first = weights[0] if isinstance(weights, list) else weights
    assert first.get("block_sizes", {}).get(-1, 0) == block
    bits = (mtq.effective(configuration, mtq.CACHE) or {}).get("num_bits")
    assert bits == {None: None, "fp8": (4, 3), "nvfp4": (2, 1)}[cache]
    # modelopt's own tables stay as they are
    unchanged = mtq.effective(getattr(mtq, CONFIGURATIONS[qformat]), mtq.WEIGHTS)
    assert (unchanged[0] if isinstance(unchanged, list) else unchanged).get("block_sizes", {}).get(-1, 0) == 2 * block


@pytest.mark.parametrize("release", ["0.37", "0.47"])
def test_a_configuration_without_the_weights_names_the_release(release: str, modelopt: Modelopt) -> None:
    mtq = modelopt(release)
    mtq.INT4_AWQ_CFG = {"quant_cfg": [] if release == "0.47" else {}}
    with pytest.raises(BuildError, match=r"this release of modelopt has no \*weight_quantizer"):
        configuration_of(mtq, "int4_awq", None, 64)
