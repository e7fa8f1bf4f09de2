"""Search the live web by Google's results, through serper.dev."""

from __future__ import annotations

import json
from collections.abc import Sequence

from toolenvs.backends import Hit
from toolenvs.backends._service import (
    accepted,
    checked_query,
    read_list,
    read_object,
    settings_text,
    web_hits,
)
from toolenvs.types import Passage
from toolenvs.web import Asker, NetworkPolicy, PageFetcher, Retries
from toolenvs.web.asking import web_address

KEY_VARIABLE = "SERPER_API_KEY"
_MOST_RESULTS = 100


class Serper:
    """Google's organic results; a page's id is its address. The key is read from SERPER_API_KEY.

    Args:
        gl: country of the results, such as ``"us"``; the service's choice if empty.
        hl: language of the results, such as ``"en"``; likewise.
        allow: networks whose pages may be opened although they are private; see NetworkPolicy.
        per_second: most searches a second.
        timeout_s: seconds to wait for it.
        retries: what to do when it fails.
        url: where the service is.

    Raises:
        UsageError: ``url`` cannot be used.
    """

    name = "serper"
    external = True

    def __init__(
        self,
        *,
        gl: str = "",
        hl: str = "",
        allow: Sequence[str] = (),
        per_second: float | None = 5.0,
        timeout_s: float = 30.0,
        retries: Retries | None = None,
        url: str = "https://google.serper.dev/search",
    ) -> None:
        self._url = web_address(url, of=self.name)
        self._settings = {"gl": gl, "hl": hl}
        self._pages = PageFetcher(NetworkPolicy(allow=tuple(allow)))
        self._asker = Asker(
            "Serper",
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
        """Search; at most 100 results.

        Raises:
            AgentFaultError: The query is blank, too long, or not taken.
            RuntimeFailure: The service failed, refuses the key, or its credits are used up.
        """
        wanted = {key: value for key, value in self._settings.items() if value}
        number = min(max(top_k, 1), _MOST_RESULTS)
        body = {"q": checked_query(query, most=2048), "num": number, **wanted}
        headers = {"X-API-KEY": self._asker.needed_key(), "Content-Type": "application/json"}
        answer = self._asker.ask("POST", self._url, content=json.dumps(body), headers=headers)
        if answer.status == 400 and b"credit" in answer.content.lower():
            raise self._asker.failure(answer)  # the account's fault, not the query's
        found = read_object(self._asker, accepted(self._asker, answer))
        entries = read_list(self._asker, answer, found, "organic")
        return web_hits(entries, top_k, url="link", title="title", snippet="snippet")

    def open(self, id_or_url: str) -> Passage | None:
        """Fetch a page of the web; see PageFetcher for what is refused."""
        return self._pages.fetch(id_or_url)
