"""What torch and the C++ compiler say where they fail, as reasons. Pure."""

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.process import Cause

CAUSES = (
    Cause(
        r"Killed signal terminated program cc1plus|cc1plus: out of memory",
        BuildFailure.OUT_OF_MEMORY,
        "the C++ compiler took all of the build's memory: raise engine.memory ({line})",
    ),
    Cause(
        r"fatal error: (\S+): No such file",
        BuildFailure.BUILDER_MISSING,
        "the C++ compiler lacks the header {0}: set engine.image to an image with g++ and its libraries",
    ),
    Cause(
        r"ptxas fatal|no kernel image is available",
        BuildFailure.UNSUPPORTED_MODEL,
        "the GPU's compiler refuses a kernel: try another engine.image ({line})",
    ),
    Cause(
        r"(?:LoweringException|MissingOperator\w*|NotImplementedError): (.*)",
        BuildFailure.UNSUPPORTED_MODEL,
        "AOTInductor cannot compile an operator of the model: {0}",
    ),
)
"""What torch and the C++ compiler say."""
