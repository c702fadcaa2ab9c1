"""The methods of the shared memory extensions in GRPCInferenceService: status, register, unregister."""

from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.errors import invalid
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.restrictions import Api
from argosy_runtime.shared_memory.checks import CUDA_HANDLE_SIZE
from argosy_runtime.shared_memory.regions import RegionKind

from .service import Methods


class SharedMemory:
    """Handlers of the regions' methods."""

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane

    def methods(self) -> Methods:
        """Return all of them."""
        group = Api.SHARED_MEMORY
        return {
            "SystemSharedMemoryStatus": (group, pb.SystemSharedMemoryStatusRequest, self._system_status),
            "CudaSharedMemoryStatus": (group, pb.CudaSharedMemoryStatusRequest, self._cuda_status),
            "SystemSharedMemoryRegister": (group, pb.SystemSharedMemoryRegisterRequest, self._register_system),
            "CudaSharedMemoryRegister": (group, pb.CudaSharedMemoryRegisterRequest, self._register_cuda),
            "SystemSharedMemoryUnregister": (group, pb.SystemSharedMemoryUnregisterRequest, self._unregister_system),
            "CudaSharedMemoryUnregister": (group, pb.CudaSharedMemoryUnregisterRequest, self._unregister_cuda),
        }

    def _system_status(self, request: pb.SystemSharedMemoryStatusRequest) -> pb.SystemSharedMemoryStatusResponse:
        response = pb.SystemSharedMemoryStatusResponse()
        for region in self._plane.regions.status(RegionKind.SYSTEM, request.name):
            about = response.regions[region.name]
            about.name, about.key = region.name, region.key
            about.offset, about.byte_size = region.offset, region.size
        return response

    def _cuda_status(self, request: pb.CudaSharedMemoryStatusRequest) -> pb.CudaSharedMemoryStatusResponse:
        response = pb.CudaSharedMemoryStatusResponse()
        for region in self._plane.regions.status(RegionKind.CUDA, request.name):
            about = response.regions[region.name]
            about.name, about.device_id, about.byte_size = region.name, region.device, region.size
        return response

    def _register_system(self, request: pb.SystemSharedMemoryRegisterRequest) -> pb.SystemSharedMemoryRegisterResponse:
        self._plane.regions.register_system(request.name, request.key, request.offset, request.byte_size)
        return pb.SystemSharedMemoryRegisterResponse()

    def _register_cuda(self, request: pb.CudaSharedMemoryRegisterRequest) -> pb.CudaSharedMemoryRegisterResponse:
        self._plane.regions.require_allowed()
        if len(request.raw_handle) != CUDA_HANDLE_SIZE:
            raise invalid(f"'raw_handle' must be a cudaIpcMemHandle_t of {CUDA_HANDLE_SIZE} bytes")
        self._plane.regions.register_cuda(request.name, request.raw_handle, request.device_id, request.byte_size)
        return pb.CudaSharedMemoryRegisterResponse()

    def _unregister_system(
        self, request: pb.SystemSharedMemoryUnregisterRequest
    ) -> pb.SystemSharedMemoryUnregisterResponse:
        self._plane.regions.unregister(RegionKind.SYSTEM, request.name)
        return pb.SystemSharedMemoryUnregisterResponse()

    def _unregister_cuda(self, request: pb.CudaSharedMemoryUnregisterRequest) -> pb.CudaSharedMemoryUnregisterResponse:
        self._plane.regions.unregister(RegionKind.CUDA, request.name)
        return pb.CudaSharedMemoryUnregisterResponse()
