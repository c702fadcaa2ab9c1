"""Requests with tensors in shared memory: inputs are copied before they are checked, outputs written before they are
reported.
"""

from argosy_runtime.errors import FaultyInputsError, ServingError
from argosy_runtime.frontends.port import DataPlane, named_fault, report_missing
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission, Tensor
from argosy_runtime.protocol.tensors import InputBytes
from argosy_runtime.shared_memory.checks import check_output
from argosy_runtime.shared_memory.locations import TensorLocation, TensorLocations
from argosy_runtime.shared_memory.regions import ClientRegions, Region
from argosy_runtime.tensors import Data, raw_tensor


def submit(
    plane: DataPlane, request: InferRequest, locations: TensorLocations, deliver: Deliver, single: bool = False
) -> Submission:
    """Submit a request, some of whose tensors lie in shared memory, as `DataPlane.submit` does."""
    shared = SharedTensors(plane.regions, deliver)
    try:
        report_missing(plane, request.model_name, request.model_version)
        shared.read(request, locations.inputs)
        shared.locate(locations.outputs)
        return plane.submit(request, shared.deliver, single)
    except FaultyInputsError as fault:
        shared.release()
        raise named_fault(plane, request.model_name, request.model_version, fault) from None
    except BaseException:
        shared.release()
        raise


class SharedTensors:
    """The regions of one request, from its submission to its last response, which `deliver` takes."""

    def __init__(self, regions: ClientRegions, deliver: Deliver) -> None:
        self._regions = regions
        self._deliver = deliver
        self._used: list[Region] = []
        self._copied = 0
        self._outputs: dict[str, tuple[Region, TensorLocation]] = {}

    def read(self, request: InferRequest, locations: dict[str, TensorLocation]) -> None:
        """Copy inputs into the request. Raises ServingError."""
        if not locations:
            return
        if request.template is not None:
            # Then all inputs have a location, and their sizes are right.
            request.raw = [self._copy(locations[spec.name]) for spec in request.template.inputs]
            return
        inputs = dict(request.inputs)
        reader = InputBytes(request.model_name, request.log_prefix)
        for name, location in locations.items():
            region = self._use(location)
            declared = inputs[name]
            if reader.count(name, declared.datatype, declared.shape, location.size) is None:
                continue
            data = self._copy_from(region, location)
            inputs[name] = reader.tensor(name, declared.datatype, declared.shape, data)
        request.inputs = inputs
        reader.check(request)

    def locate(self, locations: dict[str, TensorLocation]) -> None:
        """Remember the locations of outputs. Raises ServingError."""
        for name, location in locations.items():
            self._outputs[name] = (self._use(location), location)

    def deliver(self, response: InferResponse) -> None:
        """Write outputs to their locations, and pass the response on without their data."""
        if self._outputs and response.error is None:
            response = self._written(response)
        if response.final:
            self.release()
        self._deliver(response)

    def release(self) -> None:
        """Let the regions go; later calls do nothing."""
        used, self._used = self._used, []
        for region in used:
            self._regions.end_use(region)
        self._regions.free(self._copied)
        self._copied = 0
        self._outputs = {}

    def _copy(self, location: TensorLocation) -> Data:
        return self._copy_from(self._use(location), location)

    def _copy_from(self, region: Region, location: TensorLocation) -> Data:
        self._regions.reserve(location.size)
        self._copied += location.size
        return region.read(location.offset, location.size)

    def _use(self, location: TensorLocation) -> Region:
        region = self._regions.use(location.region, location.offset, location.size)
        self._used.append(region)
        return region

    def _written(self, response: InferResponse) -> InferResponse:
        if response.is_empty:
            return response
        outputs: list[Tensor] | None = None
        error: ServingError | None = None
        try:
            outputs = [self._write(tensor) for tensor in response.outputs]
        except ServingError as failure:
            error = failure
        name, version = response.model_name, response.model_version
        parameters, repeated = response.parameters, response.repeated
        return InferResponse(name, version, response.id, outputs, parameters, error, response.final, repeated)

    def _write(self, tensor: Tensor) -> Tensor:
        target = self._outputs.get(tensor.name)
        if target is None:
            return tensor
        region, location = target
        data = tensor.data
        check_output(tensor.name, location.size, len(data))
        region.write(location.offset, data)
        return raw_tensor(tensor.name, tensor.datatype, tensor.shape, b"")
