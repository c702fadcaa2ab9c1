"""All targets by name."""

from tests.fuzz.target import Target
from tests.fuzz.targets import activator, configs, connections, files, grpc_codecs, http_codecs, openai

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (http_codecs, grpc_codecs, connections, configs, openai, files, activator)
    for target in module.TARGETS
}
