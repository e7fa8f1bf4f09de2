"""Search the live web by Google's results, through serper.dev."""

from __future__ import annotations

import json
from collections.abc import Sequence

from toolenvs.backends import Hit
from toolenvs.backends._service import WebService, checked_query
from toolenvs.web import Answer, Retries

KEY_VARIABLE = "SERPER_API_KEY"
_MOST_RESULTS = 100


class Serper(WebService):
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
        super().__init__(
            "Serper",
            url=url,
            settings={"gl": gl, "hl": hl},
            key_variable=KEY_VARIABLE,
            allow=allow,
            per_second=per_second,
            timeout_s=timeout_s,
            retries=retries,
        )

    def search(self, query: str, top_k: int) -> list[Hit]:
        """Search; at most 100 results.

        Raises:
            AgentFaultError: The query is blank, too long, or not taken.
            RuntimeFailure: The service failed, refuses the key, or its credits are used up.
        """
        body = {"q": checked_query(query, most=2048), "num": min(max(top_k, 1), _MOST_RESULTS)}
        answer = self._posted(body, {"X-API-KEY": self._asker.needed_key()})
        if answer.status == 400 and _is_of_credits(answer):
            raise self._asker.failure(answer)  # the account's fault, not the query's
        return self._hits(answer, "organic", top_k, url="link", title="title", snippet="snippet")


def _is_of_credits(answer: Answer) -> bool:
    """Whether the service says that the account has none left; it may repeat the query besides."""
    try:
        said = json.loads(answer.content)
    except (ValueError, RecursionError):
        return False
    message = said.get("message") if isinstance(said, dict) else None
    return isinstance(message, str) and message.lower().startswith("not enough credits")
