"""Search the live web through tavily.com."""

from __future__ import annotations

import json
from collections.abc import Sequence

from toolenvs.backends import Hit
from toolenvs.backends._service import (
    accepted,
    check_choice,
    checked_query,
    read_list,
    read_object,
    settings_text,
    web_hits,
)
from toolenvs.types import Passage
from toolenvs.web import Asker, NetworkPolicy, PageFetcher, Retries
from toolenvs.web.asking import web_address

KEY_VARIABLE = "TAVILY_API_KEY"
_MOST_RESULTS = 20
_LONGEST_QUERY = 400  # the service's own bound


class Tavily:
    """Tavily's results; a page's id is its address. The key is read from TAVILY_API_KEY.

    Args:
        depth: ``"basic"`` or ``"advanced"``.
        topic: ``"general"``, ``"news"`` or ``"finance"``.
        allow: networks whose pages may be opened although they are private; see NetworkPolicy.
        per_second: most searches a second.
        timeout_s: seconds to wait for it.
        retries: what to do when it fails.
        url: where the service is.

    Raises:
        UsageError: An option has no such value.
    """

    name = "tavily"
    external = True

    def __init__(
        self,
        *,
        depth: str = "basic",
        topic: str = "general",
        allow: Sequence[str] = (),
        per_second: float | None = 5.0,
        timeout_s: float = 30.0,
        retries: Retries | None = None,
        url: str = "https://api.tavily.com/search",
    ) -> None:
        self._url = web_address(url, of=self.name)
        self._settings = {
            "search_depth": check_choice("depth", depth, ("basic", "advanced")),
            "topic": check_choice("topic", topic, ("general", "news", "finance")),
        }
        self._pages = PageFetcher(NetworkPolicy(allow=tuple(allow)))
        self._asker = Asker(
            "Tavily",
            key_variable=KEY_VARIABLE,
            per_second=per_second,
            timeout_s=timeout_s,
            retries=retries,
        )

    def close(self) -> None:
        """Close the connections; a later search opens them again."""
        self._asker.close()

    def fingerprint(self) -> str:
        """Its address and what is asked of it."""
        return settings_text(self.name, {**self._settings, "url": self._url})

    def search(self, query: str, top_k: int) -> list[Hit]:
        """Search; at most 20 results.

        Raises:
            AgentFaultError: The query is blank, has more than 400 characters, or is not taken.
            RuntimeFailure: The service failed, refuses the key, or its credits are used up.
        """
        number = min(max(top_k, 1), _MOST_RESULTS)
        text = checked_query(query, most=_LONGEST_QUERY)
        body = {"query": text, "max_results": number, **self._settings}
        headers = {
            "Authorization": f"Bearer {self._asker.needed_key()}",
            "Content-Type": "application/json",
        }
        answer = self._asker.ask("POST", self._url, content=json.dumps(body), headers=headers)
        found = read_object(self._asker, accepted(self._asker, answer))
        entries = read_list(self._asker, answer, found, "results")
        return web_hits(entries, top_k, url="url", title="title", snippet="content", score="score")

    def open(self, id_or_url: str) -> Passage | None:
        """Fetch a page of the web; see PageFetcher for what is refused."""
        return self._pages.fetch(id_or_url)
