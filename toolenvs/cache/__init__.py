"""The replay cache: results of calls by the state in which they were made.

    cache = ReplayCache("sqlite:///cache.db")      # or postgresql://HOST/NAME for many machines
    cache.put(key, result)
    cache.get(key).result
    cache.close()

All ``ReplayCache`` objects of a process with one URL share one store: reads happen inline, one
thread writes. SQLAlchemy is imported when a store is opened, not before.
"""

from __future__ import annotations

from toolenvs.cache.entry import Recording
from toolenvs.cache.flights import Flight, Flights
from toolenvs.cache.replay_cache import CacheStats, Exported, Imported, ReplayCache

__all__ = ["CacheStats", "Exported", "Flight", "Flights", "Imported", "Recording", "ReplayCache"]
