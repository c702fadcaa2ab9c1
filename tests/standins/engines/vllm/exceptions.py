"""Exceptions, some of them."""


class VLLMError(Exception):
    pass


class VLLMClientError(VLLMError):
    pass


class VLLMServerError(VLLMError):
    pass


class VLLMValidationError(VLLMClientError):
    pass


class VLLMNotFoundError(VLLMClientError):
    pass


class GracefulHTTPError(VLLMError):
    pass
