"""Counts of a server, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class SearchMetrics:
    """What the search server has done; used on the server's thread alone.

    Args:
        passages: passages that can be found, None where nobody knows.
    """

    def __init__(self, passages: int | None = None) -> None:
        self.in_progress = 0
        self._passages = passages
        self._requests: Counter[tuple[str, int]] = Counter()
        self._queries = 0
        self._hits = 0
        self._buckets = [0] * (len(_BOUNDS_S) + 1)
        self._seconds = 0.0

    def answered(self, route: str, status: int) -> None:
        """Count a request by its route and the status it was answered with."""
        self._requests[route, status] += 1

    def searched(self, *, queries: int, hits: int, seconds: float) -> None:
        """Count a request of ``/retrieve`` that found what it asked for."""
        self._queries += queries
        self._hits += hits
        self._seconds += seconds
        self._buckets[bisect_left(_BOUNDS_S, seconds)] += 1

    def text(self) -> str:
        """All counts."""
        lines = _head("requests_total", "counter", "Requests by route and status.")
        for (route, status), count in sorted(self._requests.items()):
            lines.append(
                f'toolenvs_search_requests_total{{route="{route}",code="{status}"}} {count}'
            )
        lines += _single("queries_total", "counter", "Queries that were answered.", self._queries)
        lines += _single("passages_total", "counter", "Passages that were sent.", self._hits)
        lines += _single("in_progress", "gauge", "Requests that search now.", self.in_progress)
        if self._passages is not None:
            lines += _single("corpus_passages", "gauge", "Passages searched.", self._passages)
        lines += _head("seconds", "histogram", "Seconds to answer one request of /retrieve.")
        total = 0
        for bound, count in zip((*_BOUNDS_S, "+Inf"), self._buckets, strict=True):
            total += count
            lines.append(f'toolenvs_search_seconds_bucket{{le="{bound}"}} {total}')
        lines.append(f"toolenvs_search_seconds_sum {self._seconds:.6f}")
        lines.append(f"toolenvs_search_seconds_count {total}")
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP toolenvs_search_{name} {about}", f"# TYPE toolenvs_search_{name} {kind}"]


def _single(name: str, kind: str, about: str, value: int) -> list[str]:
    return [*_head(name, kind, about), f"toolenvs_search_{name} {value}"]
