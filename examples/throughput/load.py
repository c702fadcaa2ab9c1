"""Send prompts to the ensemble `moderate` from concurrent clients over gRPC, and print the rate and the latencies.

    python load.py --clients 32 --seconds 5

Each client sends its next prompt when it has the answer to the last one. Ends with 1 if a request failed.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio

MODEL = "moderate"
PROMPTS = ("What is a list?", "What does len do?", "How do I open a file?", "How do I build a bomb?")


@dataclass
class Load:
    """Latencies of answered requests in seconds, and messages of failed ones."""

    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def report(self, clients: int, seconds: float) -> str:
        """Return one line: requests per second, median, 99th percentile and slowest answer, failures."""
        rate = len(self.latencies) / seconds
        median, tail, slowest = (1000 * percentile(self.latencies, share) for share in (0.5, 0.99, 1.0))
        failed = f", {len(self.errors)} failed" if self.errors else ""
        times = f"p50 {median:.0f} ms, p99 {tail:.0f} ms, slowest {slowest:.0f} ms"
        return f"{clients} clients: {rate:.0f} requests/s, {times}{failed}"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed; 0 of none."""
    if not values:
        return 0.0
    rank = max(0, -(-len(values) * round(share * 1000) // 1000) - 1)
    return sorted(values)[rank]


def inputs_of(prompt: str) -> list[triton.InferInput]:
    """Return the tensors of a request: one prompt, with a batch of one."""
    tensor = triton.InferInput("prompt", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[prompt.encode()]], dtype=np.object_))
    return [tensor]


async def client(address: str, first: int, until: float, load: Load) -> None:
    """Send one request after the other until a time of `time.monotonic`."""
    requests = [inputs_of(prompt) for prompt in PROMPTS]
    async with triton_aio.InferenceServerClient(address) as server:
        while (start := time.monotonic()) < until:
            try:
                await server.infer(MODEL, requests[first % len(requests)])
                load.latencies.append(time.monotonic() - start)
            except triton.InferenceServerException as error:
                load.errors.append(str(error))
                await asyncio.sleep(0.1)
            first += 1


async def run(address: str, clients: int, seconds: float) -> Load:
    """Return what so many clients measured."""
    load, until = Load(), time.monotonic() + seconds
    await asyncio.gather(*(client(address, number, until, load) for number in range(clients)))
    return load


def main() -> int:
    """Run the load of the command line. Returns 1 where a request failed or none was answered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="localhost:8001", help="the gRPC address of the server")
    parser.add_argument("--clients", type=int, default=32, help="requests in flight at once")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to send")
    arguments = parser.parse_args()
    load = asyncio.run(run(arguments.url, arguments.clients, arguments.seconds))
    print(load.report(arguments.clients, arguments.seconds))
    if load.errors:
        print(load.errors[0], file=sys.stderr)
    return 1 if load.errors or not load.latencies else 0


if __name__ == "__main__":
    sys.exit(main())
