"""tritonserver's flags that this server accepts and ignores."""

from collections.abc import Sequence

from argosy_runtime.repository.options import BackendSetting

# tritonserver's flags that are accepted and change nothing here; the server logs them when it starts.
WITHOUT_EFFECT = frozenset(
    (
        "backend-directory",
        "buffer-manager-thread-count",
        "cuda-memory-pool-byte-size",
        "cuda-virtual-address-size",
        "enable-peer-access",
        "grpc-http2-max-pings-without-data",
        "grpc-infer-allocation-pool-size",
        "grpc-infer-thread-count",
        "grpc-max-response-pool-size",
        "http-thread-count",
        "min-supported-compute-capability",
        "repoagent-directory",
        "sagemaker-thread-count",
        "vertex-ai-thread-count",
    )
)


def sort_out(rest: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Split what argparse did not parse into tritonserver's flags without effect, with their values, and the rest."""
    ignored: list[tuple[str, str]] = []
    unknown: list[str] = []
    takes_next = False
    for word in rest:
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and name in WITHOUT_EFFECT:
            ignored.append((name, value))
            takes_next = not equals
        elif takes_next and not word.startswith("--"):
            ignored[-1] = (ignored[-1][0], word)
            takes_next = False
        else:
            unknown.append(word)
    return ignored, unknown


def without_effect_on_backends(settings: Sequence[BackendSetting]) -> list[str]:
    """Return the flags of the settings that change nothing here."""
    ignored = [setting for setting in settings if not setting.acts]
    return [f"--backend-config={setting.backend and setting.backend + ','}{setting.name}" for setting in ignored]
