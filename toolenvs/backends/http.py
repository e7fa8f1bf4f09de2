"""Ask a retrieval server over Search-R1's route ``/retrieve``, in whichever dialect it speaks."""

from __future__ import annotations

import codecs
import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args
from urllib.parse import urljoin

import msgspec

from toolenvs.backends import LONGEST_ID, Hit, shown_id
from toolenvs.backends._service import (
    OF_THE_QUERY,
    PLAIN_QUERY,
    accepted,
    check_choice,
    checked_query,
    number,
    one_line,
    settings_text,
    text_of,
)
from toolenvs.errors import RuntimeFailure
from toolenvs.locks import ForkLock
from toolenvs.ranges import checked_whole
from toolenvs.types import Passage
from toolenvs.web import Answer, Asker, Retries
from toolenvs.web.asking import web_address

KEY_VARIABLE = "TOOLENVS_SEARCH_KEY"
SNIPPET_CHARS = 1000
_MOST_KEPT = 1 << 30
_UNREAD = OF_THE_QUERY | {415}
_NO_ENTRY = {401, 403}

Dialect = Literal["queries", "query", "msgpack"]
"""How a query is sent: in a JSON list ``queries`` (Search-R1, SkyRL's main branch), as a JSON text
``query`` (skyrl-gym 0.4), or in MessagePack (GEM). Replies are read in every shape."""


class Http:
    """A server with the route ``/retrieve`` of Search-R1.

    A reply may hold scored items or bare documents, in JSON or MessagePack; without scores each
    hit has 0. A document without an id is called by a hash of its text.

    What was retrieved can be opened; other passages too where the server has the route
    ``/document`` of ``toolenvs serve search``. What was retrieved last is kept for all episodes of
    the process: of a server without that route, so much can be opened and no more. A key in
    TOOLENVS_SEARCH_KEY is sent as a bearer token.

    Args:
        url: the server's address, with or without ``/retrieve``.
        dialect: how a query is sent.
        kept: passages that are kept to be opened, 0 or more; the latest count.
        per_second: most searches a second.
        timeout_s: seconds to wait for it.
        retries: what to do when it fails.

    Raises:
        UsageError: An option has no such value.
    """

    name = "http"
    external = True

    def __init__(
        self,
        *,
        url: str,
        dialect: Dialect = "queries",
        kept: int = 10_000,
        per_second: float | None = None,
        timeout_s: float = 30.0,
        retries: Retries | None = None,
    ) -> None:
        address = web_address(url, of=self.name)
        has_path = "/" in address.partition("://")[2]
        self._url = address if has_path else f"{address}/retrieve"
        self._dialect = check_choice("dialect", dialect, get_args(Dialect))
        self._kept = _Kept(checked_whole("kept", kept, most=_MOST_KEPT))
        self._asker = Asker(
            "the retrieval server",
            key_variable=KEY_VARIABLE,
            per_second=per_second,
            timeout_s=timeout_s,
            retries=retries,
        )

    def close(self) -> None:
        """Close the connections; a later search opens them again."""
        self._asker.close()

    def fingerprint(self) -> str:
        """The server's address and dialect; what it searches, only it knows."""
        return settings_text(self.name, {"url": self._url, "dialect": self._dialect})

    def search(self, query: str, top_k: int) -> list[Hit]:
        """Search.

        Raises:
            AgentFaultError: The query is blank, too long, or not taken.
            RuntimeFailure: The server failed, or its reply has another shape.
        """
        answer = self._asked(checked_query(query, most=8192), top_k)
        if answer.status in _UNREAD and self._asked(PLAIN_QUERY, 1).status in _UNREAD:
            raise RuntimeFailure(
                "search",
                f"the retrieval server does not speak the dialect {self._dialect!r} "
                f"(status {answer.status}); others are {', '.join(get_args(Dialect))}.",
                reason="another dialect",
            )
        accepted(self._asker, answer)
        pairs = read_result(self._asker, answer, flat=self._dialect != "queries")[:top_k]
        self._kept.add(passage for passage, _ in pairs)
        return [_hit(passage, score) for passage, score in pairs]

    def open(self, id_or_url: str) -> Passage | None:
        """Return a passage that was retrieved, else ask the server for it.

        A server may have no such route, or any other at its place: what is no document is none.

        Raises:
            RuntimeFailure: The server failed, or refuses the key for a search too.
        """
        found = self._kept.get(id_or_url)
        if found is not None or not id_or_url.strip() or len(id_or_url) > LONGEST_ID:
            return found
        params = {"id": id_or_url.encode("utf-8", "replace").decode()}
        url = urljoin(self._url, "document")
        answer = self._asker.ask("GET", url, params=params, headers=self._headers())
        if answer.status in _NO_ENTRY and self._asked(PLAIN_QUERY, 1).status in _NO_ENTRY:
            raise self._asker.failure(answer)
        return _document(answer) if 200 <= answer.status < 300 else None

    def _asked(self, query: str, top_k: int) -> Answer:
        return self._asker.ask("POST", self._url, **self._request(query, top_k))

    def _request(self, query: str, top_k: int) -> dict[str, Any]:
        wanted = {"topk": top_k, "return_scores": True}
        if self._dialect == "query":
            content = msgspec.json.encode({"query": query, **wanted})
        elif self._dialect == "queries":
            content = msgspec.json.encode({"queries": [query], **wanted})
        else:  # GEM's servers read one of them, by their age, and ignore the other
            content = msgspec.msgpack.encode({"queries": [query], "query": query, **wanted})
        kind = "application/msgpack" if self._dialect == "msgpack" else "application/json"
        return {"content": content, "headers": {**self._headers(), "Content-Type": kind}}

    def _headers(self) -> dict[str, str]:
        key = self._asker.key()
        return {"Authorization": f"Bearer {key}"} if key else {}


def read_result(asker: Asker, answer: Answer, *, flat: bool = False) -> list[tuple[Passage, float]]:
    """Read the passages for one query, in whichever dialect they come.

    Args:
        asker: whoever asked.
        answer: the reply, in JSON or MessagePack.
        flat: whether an empty ``result`` may stand for no documents; for a list of queries it is
            one list of documents too few.

    Raises:
        RuntimeFailure: The reply has no list ``result`` of documents: that is never "no results".
    """
    found = _decoded(answer)
    result = found.get("result") if isinstance(found, Mapping) else None
    if not isinstance(result, list):
        raise asker.no_answer(answer, "a reply without a list 'result'")
    if len(result) == 1 and isinstance(result[0], list):
        result = result[0]
    elif not result and not flat:
        raise asker.no_answer(answer, "no list of documents for the query")
    pairs = [_pair(item) for item in result]
    read = [pair for pair in pairs if pair is not None]
    if len(read) < len(pairs):
        raise asker.no_answer(answer, "items that are no documents")
    return read


def _decoded(answer: Answer) -> Any:
    try:
        content = answer.content.removeprefix(codecs.BOM_UTF8)
        if content.lstrip()[:1] in (b"{", b"["):
            return json.loads(content)
        return msgspec.msgpack.decode(content)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _pair(item: object) -> tuple[Passage, float] | None:
    """A passage and its score: scored items hold the document, bare ones are it."""
    score = 0.0
    if isinstance(item, Mapping) and "document" in item:
        score = number(item.get("score"), otherwise=0.0)
        item = item["document"]
    if isinstance(item, str):
        item = {"contents": item}
    passage = _passage(item) if isinstance(item, Mapping) else None
    return None if passage is None else (passage, score)


def _passage(document: Mapping[str, Any]) -> Passage | None:
    """A document: ``contents`` whose first line is the title, or ``title`` and ``text``."""
    contents = document.get("contents", document.get("content"))
    title, text = one_line(document.get("title")), text_of(document.get("text"))
    if isinstance(contents, str) and not (title and text):
        head, line_break, rest = text_of(contents).partition("\n")
        title = title or (_unquoted(one_line(head)) if line_break else "")
        text = text or (rest if line_break else head)
    elif not text and not title:
        return None
    name = document.get("id", document.get("_id"))
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        name = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:16]
    return Passage(
        id=text_of(str(name)), title=title, text=text.strip(), url=one_line(document.get("url"))
    )


def _unquoted(title: str) -> str:
    return title[1:-1] if len(title) > 1 and title[0] == title[-1] == '"' else title


def _document(answer: Answer) -> Passage | None:
    found = _decoded(answer)
    return _passage(found) if isinstance(found, Mapping) else None


def _hit(passage: Passage, score: float) -> Hit:
    return Hit(
        id=passage.id,
        title=passage.title,
        score=score,
        snippet=passage.text[:SNIPPET_CHARS],
        url=passage.url,
    )


class _Kept:
    """The passages that were retrieved last, for all threads; an id goes before an address."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = ForkLock()
        self._passages: OrderedDict[str, Passage] = OrderedDict()
        self._otherwise: dict[str, str] = {}
        """The id of each passage that has an address, or is shown by another id than its own."""

    def __reduce__(self) -> tuple[type[_Kept], tuple[int]]:
        return type(self), (self._most,)

    def add(self, passages: Iterable[Passage]) -> None:
        with self._lock:
            for passage in passages:
                self._forget(passage.id)
                self._passages[passage.id] = passage
                for name in _other_names(passage):
                    self._otherwise.setdefault(name, passage.id)
            while len(self._passages) > self._most:
                self._forget(next(iter(self._passages)))

    def get(self, name: str) -> Passage | None:
        with self._lock:
            found = self._passages.get(name)
            return found or self._passages.get(self._otherwise.get(name, ""))

    def _forget(self, name: str) -> None:
        passage = self._passages.pop(name, None)
        for other in _other_names(passage) if passage is not None else ():
            if self._otherwise.get(other) == name:
                del self._otherwise[other]


def _other_names(passage: Passage) -> set[str]:
    return {passage.url, shown_id(passage.id)} - {"", passage.id}
