"""AOTInductor's options: settings of `torch._inductor.config`, and of `torch.export`."""

from .option import Option, flag, integers

AOTINDUCTOR: dict[str, Option] = {
    "max_autotune": flag("Kernels are chosen by their time, where there are several.", default=False),
    "freezing": flag("Weights are constants of the graph, and folded.", default=False),
    "coordinate_descent_tuning": flag("Kernels are tuned step by step.", default=False),
    "epilogue_fusion": flag("What follows a product is joined with it.", default=True),
    "strict": flag("torch.export follows Python bytecode, not one run of the model.", default=False),
    "cpp.simdlen": integers(
        "Bits of vectors on amd64: 256 runs on any processor with AVX2, 512 needs AVX-512.", 256, 512, default=256
    ),
}
