"""Search the live web through a SearXNG of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolenvs.backends import Hit
from toolenvs.backends._service import PLAIN_QUERY, WebService, checked_query, read_object, web_hits
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.web import AgentFaultError, Answer, Retries

KEY_VARIABLE = "SEARXNG_KEY"
_FIELDS = {"url": "url", "title": "title", "snippet": "content", "score": "score"}


class Searxng(WebService):
    """A SearXNG whose settings allow the format ``json``; a page's id is its address.

    A key in SEARXNG_KEY is sent as a bearer token, for instances behind a proxy that asks for one.

    Args:
        url: where it runs, such as ``"http://localhost:8888"``.
        engines: the engines to ask, with commas; its own choice if empty.
        language: such as ``"en"``; its own if empty.
        safesearch: 0, 1 or 2.
        allow: networks whose pages may be opened although they are private; see NetworkPolicy.
        per_second: most searches a second.
        timeout_s: seconds to wait for it.
        retries: what to do when it fails.

    Raises:
        UsageError: ``url`` cannot be used, or an option has no such value.
    """

    name = "searxng"

    def __init__(
        self,
        *,
        url: str,
        engines: str = "",
        language: str = "",
        safesearch: int = 0,
        allow: Sequence[str] = (),
        per_second: float | None = None,
        timeout_s: float = 30.0,
        retries: Retries | None = None,
    ) -> None:
        if isinstance(safesearch, bool) or safesearch not in (0, 1, 2):
            raise UsageError(f"safesearch={safesearch!r} must be 0, 1 or 2.")
        super().__init__(
            "SearXNG",
            url=url,
            settings={"engines": engines, "language": language, "safesearch": safesearch},
            key_variable=KEY_VARIABLE,
            allow=allow,
            per_second=per_second,
            timeout_s=timeout_s,
            retries=retries,
        )

    def search(self, query: str, top_k: int) -> list[Hit]:
        """Search; of its first page of results, which has some ten to thirty.

        Before them come its answers and infoboxes that have an address, as it shows them.
        Words lose the marks at their beginning that SearXNG reads as commands.

        Raises:
            AgentFaultError: The query is blank, too long, not taken, or one that engines fail at.
            RuntimeFailure: It failed, or found nothing while some of its engines failed, for a
                plain query too.
        """
        answer = self._asked(checked_query(plain_words(query), most=2048))
        if _redirects(answer) and not _redirects(self._asked(PLAIN_QUERY)):
            raise AgentFaultError(
                "bad_arguments", "the search service takes this query for a command; use words."
            )
        hits = self._found(answer, top_k)
        if not hits and (silent := _unresponsive(read_object(self._asker, answer))):
            if self._hits(self._asked(PLAIN_QUERY), "results", 1, **_FIELDS):
                raise AgentFaultError(
                    "bad_arguments", "the search failed at this query; write it in other words."
                )
            raise RuntimeFailure(
                "search",
                f"SearXNG: nothing was found, but these engines failed: {silent}.",
                reason="engines failed",
            )
        return hits

    def _found(self, answer: Answer, top_k: int) -> list[Hit]:
        results = self._hits(answer, "results", top_k, **_FIELDS)
        boxes = web_hits(_boxes(read_object(self._asker, answer)), top_k, **_FIELDS)
        above = {hit.id for hit in boxes}
        return [*boxes, *(hit for hit in results if hit.id not in above)][:top_k]

    def _asked(self, text: str) -> Answer:
        wanted = {key: str(value) for key, value in self._settings.items()}
        key = self._asker.key()
        return self._asker.ask(
            "GET",
            f"{self._url}/search",
            params={"q": text, "format": "json", **wanted},
            headers={"Authorization": f"Bearer {key}"} if key else {},
        )


def plain_words(query: str) -> str:
    """A query without what SearXNG reads as commands at the beginning of a word.

    ``!!g`` would send whoever asks to another site, ``!images`` and ``?`` choose engines, ``:fr`` a
    language, and ``<1`` a time limit.
    """
    return " ".join(filter(None, (word.lstrip("!?:<") for word in query.split())))


def _boxes(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What it shows above its results, in their fields."""
    for key, title, content in (
        ("answers", "title", "answer"),
        ("infoboxes", "infobox", "content"),
    ):
        entries = found.get(key)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict):
                address = entry.get("url") or entry.get("id")
                yield {"url": address, "title": entry.get(title), "content": entry.get(content)}


def _redirects(answer: Answer) -> bool:
    return 300 <= answer.status < 400


def _unresponsive(found: dict[str, Any]) -> str:
    engines = found.get("unresponsive_engines")
    if not isinstance(engines, list):
        return ""
    names = [
        str(engine[0]) if isinstance(engine, list) and engine else engine for engine in engines
    ]
    return ", ".join(str(name)[:40] for name in names[:10])
