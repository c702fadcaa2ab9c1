"""Where things are in a server's Pod: ports and paths, as its containers, volumes and Services agree on them."""

HTTP_PORT, GRPC_PORT, METRICS_PORT = 8000, 8001, 8002
PORTS = {"http": HTTP_PORT, "grpc": GRPC_PORT, "metrics": METRICS_PORT}

MODELS = "/models"
"""The agent's folder: the repository, and beside it, for hard links, the cache."""
REPOSITORY_FOLDER = "repository"
REPOSITORY = f"{MODELS}/{REPOSITORY_FOLDER}"
CACHE = f"{MODELS}/cache"
CLAIMED_CACHE = "/cache"
"""Where a cache that servers share is mounted."""
CLAIMS = "/pvc"
"""Below it each claim that a storageUri names, by the claim's name."""
STORAGE_SECRET = "/secrets/storage"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where clients of the API look for a token by themselves."""
TEMPORARY = "/tmp"


def claim_path(claim: str) -> str:
    """Where the agent finds a PersistentVolumeClaim's files."""
    return f"{CLAIMS}/{claim}"
