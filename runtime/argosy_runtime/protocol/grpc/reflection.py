"""gRPC's server reflection: which services there are, and the schemas of their messages.

Its messages are those of grpcio-reflection, whose own server needs all of gRPC's library.
"""

from functools import cached_property
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from tritonclient.grpc import service_pb2

REFLECTION: Final = "grpc.reflection.v1alpha.ServerReflection"
SAME_MESSAGES: Final = "grpc.reflection.v1.ServerReflection"
"""The newer name of the service; its messages have the same form."""
_UNKNOWN_NAME: Final = 5


class Reflection:
    """Answers the requests of clients about the services of this server, and about nothing else in its process."""

    @cached_property
    def _messages(self) -> Any:
        # Few clients ask, so that few servers need these schemas.
        from grpc_reflection.v1alpha import reflection_pb2

        return reflection_pb2

    @cached_property
    def _files(self) -> dict[str, FileDescriptorProto]:
        """The schemas by name, each behind those that it needs."""
        from grpc_health.v1 import health_pb2

        files: dict[str, FileDescriptorProto] = {}
        for module in (service_pb2, health_pb2, self._messages):
            _add(module.DESCRIPTOR, files)
        return files

    @cached_property
    def _pool(self) -> DescriptorPool:
        pool = DescriptorPool()
        for file in self._files.values():
            pool.Add(file)
        return pool

    def answer(self, message: bytes) -> bytes:
        """Return the response to a request. Raises google.protobuf's DecodeError where it is none."""
        request = self._messages.ServerReflectionRequest.FromString(message)
        response = self._messages.ServerReflectionResponse(valid_host=request.host, original_request=request)
        try:
            self._fill(request, response)
        except KeyError:
            response.error_response.error_code = _UNKNOWN_NAME
            response.error_response.error_message = "not found"
        encoded: bytes = response.SerializeToString()
        return encoded

    def _fill(self, request: Any, response: Any) -> None:
        kind = request.WhichOneof("message_request")
        if kind == "list_services":
            for file in self._files.values():
                for service in file.service:
                    response.list_services_response.service.add(name=f"{file.package}.{service.name}")
        elif kind == "all_extension_numbers_of_type":
            message = self._pool.FindMessageTypeByName(request.all_extension_numbers_of_type)
            response.all_extension_numbers_response.base_type_name = message.full_name
        else:
            files: dict[str, FileDescriptorProto] = {}
            _add(self._file(kind, request), files)
            for file in files.values():
                response.file_descriptor_response.file_descriptor_proto.append(file.SerializeToString())

    def _file(self, kind: str | None, request: Any) -> Any:
        """Return the descriptor of the requested file. Raises KeyError where there is none."""
        if kind == "file_by_filename":
            return self._pool.FindFileByName(request.file_by_filename)
        if kind == "file_containing_symbol":
            return self._pool.FindFileContainingSymbol(request.file_containing_symbol)
        # Protocol buffers of version 3 have no extensions.
        raise KeyError(kind)


def _add(descriptor: Any, files: dict[str, FileDescriptorProto]) -> None:
    """Add a file's schema behind those that it needs."""
    if descriptor.name in files:
        return
    for needed in descriptor.dependencies:
        _add(needed, files)
    file = FileDescriptorProto()
    descriptor.CopyToProto(file)
    files[descriptor.name] = file
