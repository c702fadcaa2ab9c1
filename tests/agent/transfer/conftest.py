"""The fixtures of storages that are not ours."""

from tests.agent.sites import cache, proxied, s3, shared_site, site, storage

__all__ = ["cache", "proxied", "s3", "shared_site", "site", "storage"]
