"""The fixtures of what a cache is filled from."""

from tests.agent.sites import cache, proxied, s3, shared_site, site, storage

__all__ = ["cache", "proxied", "s3", "shared_site", "site", "storage"]
