"""Faults of a GPU are told from want of memory and from mistakes of a program, by the words of frameworks."""

import pytest

from argosy_runtime.out_of_memory import says_out_of_memory
from argosy_runtime.shared.device_errors import said_in


@pytest.mark.parametrize(
    "words",
    [
        "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported",
        "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered",
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
        "CUDA error: unknown error",
        "CUDA error: unspecified launch failure",
        "cudaErrorECCUncorrectable: uncorrectable ECC error encountered",
        "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
        "onnx runtime error 6: CUDA failure 100: no CUDA-capable device is detected ; GPU=0 ; hostname=a",
        "CUDA failure 700: an illegal memory access was encountered ; GPU=0",
        "CUDA's cuInit failed with 999: unknown error",
        "CUDA's cuMemcpyHtoDAsync_v2 failed with 214: uncorrectable ECC error encountered",
        "RuntimeError: No CUDA GPUs are available",
        "CUDA driver initialization failed, you might not have a CUDA gpu.",
        "Found no NVIDIA driver on your system",
        "all CUDA-capable devices are busy or unavailable",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
        "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.",
        "1: [cudaDriverHelpers.cpp] Error Code 1: Cuda Driver (an illegal memory access was encountered)",
    ],
)
def test_words_of_a_gpu_that_does_not_work(words: str) -> None:
    assert said_in(words)
    assert not says_out_of_memory(words)


@pytest.mark.parametrize(
    "words",
    [
        "CUDA error: out of memory",
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB",
        "CUDA failure 2: out of memory ; GPU=0",
        "CUDA's cuMemAlloc_v2 failed with 2: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cudaErrorMemoryAllocation",
        "CUDA error: invalid configuration argument",
        "CUDA error: invalid device ordinal",
        "CUDA error: no kernel image is available for execution on the device",
        "CUDA failure 209: no kernel image is available for execution on the device",
        "Torch not compiled with CUDA enabled",
        "failed to load 'xid-2': model.onnx holds no graph",
        "",
    ],
)
def test_other_words(words: str) -> None:
    assert not said_in(words)
