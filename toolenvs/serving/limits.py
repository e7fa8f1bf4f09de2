"""What one client, and all of them together, may ask of the search server."""

from __future__ import annotations

import msgspec

from toolenvs.errors import UsageError


class SearchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the search server.

    Attributes:
        top_k: passages for a query whose request names no ``topk``; Search-R1 has 3.
        max_top_k: most passages for one query.
        max_queries: most queries of one request; Search-R1 sends a whole batch of rollouts.
        max_query_chars: most characters of one query.
        max_body_bytes: most bytes of one request; more than the largest that the bounds allow.
        max_held_bytes: most bytes of all requests at once; to one beyond the server is busy.
        body_timeout_s: seconds in which a request's body must have come.
        threads: searches at once.
        max_requests: requests at once that search or open, those that wait included; to one more
            the server is busy.

    Raises:
        UsageError: A bound is not positive, or ``top_k`` is above ``max_top_k``.
    """

    top_k: int = 3
    max_top_k: int = 100
    max_queries: int = 4096
    max_query_chars: int = 8192
    max_body_bytes: int = 64 << 20
    max_held_bytes: int = 256 << 20
    body_timeout_s: float = 30.0
    threads: int = 4
    max_requests: int = 1024

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not getattr(self, name) > 0:
                raise UsageError(f"{name}={getattr(self, name)} must be above 0.")
        if self.top_k > self.max_top_k:
            raise UsageError(f"top_k={self.top_k} is above max_top_k={self.max_top_k}.")
