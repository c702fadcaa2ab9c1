"""The driver's own stream and page-locked memory."""

import numpy as np
import torch

from argosy_runtime.backends.devices.cuda import CudaStream


def test_there_and_back_through_page_locked_memory(gpu: torch.device) -> None:
    torch.zeros(1, device=gpu)  # torch recognizes page-locked memory once it has initialized CUDA
    stream = CudaStream(gpu.index)
    sent, received = stream.pinned(4096), stream.pinned(4096)
    sent[:] = np.arange(4096, dtype=np.uint8)
    assert torch.from_numpy(sent).is_pinned()
    on_device = torch.empty(4096, dtype=torch.uint8, device=gpu)
    stream.copy(on_device.data_ptr(), sent.ctypes.data, 4096)
    stream.copy(received.ctypes.data, on_device.data_ptr(), 4096)
    stream.synchronize()
    assert received.tolist() == sent.tolist()
    assert on_device.cpu().tolist() == sent.tolist()
    stream.close()
