"""The world outside: pages that an agent opens, and services that are asked over HTTP.

Whoever an agent can send to an address could be sent to the machine's own: pages are fetched under
a ``NetworkPolicy``. Services are the operator's choice and are asked through an ``Asker``.
"""

from __future__ import annotations

from toolenvs.web.asking import Answer, Asker
from toolenvs.web.faults import AgentFaultError
from toolenvs.web.page import PageFetcher, PageLimits
from toolenvs.web.policy import NetworkPolicy
from toolenvs.web.retrying import Retries

__all__ = [
    "AgentFaultError",
    "Answer",
    "Asker",
    "NetworkPolicy",
    "PageFetcher",
    "PageLimits",
    "Retries",
]
