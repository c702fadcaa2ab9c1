"""Errors of a GPU differ from mistakes of a program, which may end a process and say nothing of the GPU."""

import pytest

from argosy_common.device_errors import is_faulty, line_of, matches, signed
from argosy_runtime.failures.out_of_memory import says_out_of_memory

ECC = "CUDA error: uncorrectable ECC error encountered"


@pytest.mark.parametrize(
    "words",
    [
        ECC,
        "CUDA error: unknown error\nSearch for `cudaErrorUnknown' in CUDA's documentation",
        "CUDA error: no CUDA-capable device is detected",
        "CUDA error: system not yet initialized",
        "CUDA error: uncorrectable NVLink error detected during the execution",
        "cudaErrorECCUncorrectable: uncorrectable ECC error encountered",
        "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
        "onnx runtime error 6: CUDA failure 100: no CUDA-capable device is detected ; GPU=0 ; hostname=a",
        "CUDA's cuInit failed with 999: unknown error",
        "CUDA's cuMemcpyHtoDAsync_v2 failed with 214: uncorrectable ECC error encountered",
        "CUDA initialization failure with error: 100",
        "Unexpected error from cudaGetDeviceCount(). Did you set an error? Error 802: system not yet initialized",
        "No CUDA GPUs are available",
        "CUDA driver initialization failed, you might not have a CUDA gpu.",
        "CUDA unknown error - this may be due to an incorrectly set up environment",
        "Found no NVIDIA driver on your system",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
        "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.",
    ],
)
def test_words_of_a_gpu_that_does_not_work(words: str) -> None:
    line = line_of(f"It failed\n{words}\nand more")
    assert line == words.splitlines()[0]
    assert is_faulty(line)
    assert not says_out_of_memory(words)


@pytest.mark.parametrize(
    "words",
    [
        "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported",
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: misaligned address",
        "CUDA error: unspecified launch failure",
        "CUDA error: the launch timed out and was terminated",
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
        "CUDA failure 700: an illegal memory access was encountered ; GPU=0",
        "1: [cudaDriverHelpers.cpp] Error Code 1: Cuda Driver (an illegal memory access was encountered)",
        "cudaErrorLaunchFailure",
    ],
)
def test_errors_of_programs_that_end_a_process_and_say_nothing_of_the_gpu(words: str) -> None:
    line = line_of(words)
    assert line == words.splitlines()[0]
    assert not is_faulty(line)


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
        "CUDA error: too many resources requested for launch",
        "CUDA error: too many blocks in cooperative launch",
        "CUDA error: device kernel image is invalid",
        "CUDA error: file not found",
        "CUDA error: resource already mapped",
        "CUDA error: the graph update was not performed because it included changes which violated constraints",
        "CUDA error: dependency created on uncaptured work in another stream",
        "CUDA error: context is destroyed",
        "CUDA error: exclusive-thread device already in use by a different thread",
        "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "CUDA error: device not ready",
        "CUDA error: driver shutting down",
        "CUDA error: initialization error",
        "CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        "cudaErrorAssertion",
        "CUDA failure 7000: none",
        "Torch not compiled with CUDA enabled",
        "unknown error",
        "failed to load 'xid-2': model.onnx holds no graph",
        "",
    ],
)
def test_other_words(words: str) -> None:
    assert not line_of(words)
    assert not is_faulty(words)


@pytest.mark.parametrize("label", ["Internal", "Invalid argument"])
def test_a_server_signs_what_it_tells_of_a_gpu_that_does_not_work(label: str) -> None:
    line = signed("RuntimeError: no", ECC)
    load = f"load failed for model 'm': version 12 is at UNAVAILABLE state: {label}: "
    assert matches(line)
    assert matches(load + line)
    assert signed(line, ECC) == line
    assert not matches(signed(ECC, ""))
    assert not matches(signed(ECC, "CUDA error: device-side assert triggered"))
    assert not matches(f"{load}ValueError: {line}")
    assert not matches(f"{load}ValueError: {load}{line}")
