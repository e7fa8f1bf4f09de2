"""Search the live web through tavily.com."""

from __future__ import annotations

from collections.abc import Sequence

from toolenvs.backends import Hit
from toolenvs.backends._service import WebService, check_choice, checked_query
from toolenvs.web import Retries

KEY_VARIABLE = "TAVILY_API_KEY"
_MOST_RESULTS = 20
_FIELDS = {"url": "url", "title": "title", "snippet": "content", "score": "score"}
_LONGEST_QUERY = 400  # the service's own bound


class Tavily(WebService):
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
        super().__init__(
            "Tavily",
            url=url,
            settings={
                "search_depth": check_choice("depth", depth, ("basic", "advanced")),
                "topic": check_choice("topic", topic, ("general", "news", "finance")),
            },
            key_variable=KEY_VARIABLE,
            allow=allow,
            per_second=per_second,
            timeout_s=timeout_s,
            retries=retries,
        )

    def search(self, query: str, top_k: int) -> list[Hit]:
        """Search; at most 20 results.

        Raises:
            AgentFaultError: The query is blank, has more than 400 characters, or is not taken.
            RuntimeFailure: The service failed, refuses the key, or its credits are used up.
        """
        text = checked_query(query, most=_LONGEST_QUERY)
        body = {"query": text, "max_results": min(max(top_k, 1), _MOST_RESULTS)}
        answer = self._posted(body, {"Authorization": f"Bearer {self._asker.needed_key()}"})
        return self._hits(answer, "results", top_k, **_FIELDS)
