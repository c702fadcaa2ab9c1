"""A builder that copies the model in three phases, and counts what it did."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from argosy_agent.contract.builds import BuildRequest, ModelShape
from argosy_builder.contract import BuildError, BuildJob, Phase, Runner, Workspace


@dataclass
class CopyingBuilder:
    """`fails` is raised by the phase of that name."""

    name: str = "onnxruntime"
    ran: list[str] = field(default_factory=list)
    fails: dict[str, BaseException] = field(default_factory=dict)
    version: str = "copier 1.0"

    def compiler(self) -> str:
        return self.version

    def phases(self, job: BuildJob) -> Sequence[Phase]:
        def step(name: str, before: str) -> Phase:
            def run(workspace: Workspace) -> None:
                self.ran.append(name)
                source = workspace.finished[before] if before else job.model
                text = next(path for path in source.iterdir()).read_text()
                (workspace.out / "engine.bin").write_text(f"{text}>{name}")
                job.progress(50, f"half of {name}")
                if name in self.fails:
                    raise self.fails[name]

            return Phase(name, 1, run)

        return step("convert", ""), step("quantize", "convert"), step("compile", "quantize")

    def check(self, job: BuildJob, folder: Path) -> None:
        self.ran.append("check")
        if "check" in self.fails:
            raise self.fails["check"]

    def shape(self, job: BuildJob) -> ModelShape | None:
        return ModelShape(2, 64, 4, 2, 16)

    @contextmanager
    def runner(self, folder: Path, request: BuildRequest) -> Iterator[Runner]:
        raise BuildError("never", "asked")  # type: ignore[arg-type]
        yield
