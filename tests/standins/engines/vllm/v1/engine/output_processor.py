"""The outputs of a request that have not been read."""


class RequestOutputCollector:
    def __init__(self, output_kind, request_id):
        self.request_id = request_id
        self.output = None

    def put(self, output):
        assert self.output is None, "the outputs of a step are not read"
        self.output = output

    def get_nowait(self):
        output, self.output = self.output, None
        if isinstance(output, Exception):
            raise output
        return output
