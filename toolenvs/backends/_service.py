"""What backends that ask a service share: how it is asked, what is sent, and how it is read."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolenvs.backends import LONGEST_ID, Hit
from toolenvs.errors import UsageError
from toolenvs.types import Passage
from toolenvs.web import AgentFaultError, Answer, Asker, NetworkPolicy, PageFetcher, Retries
from toolenvs.web.asking import web_address

_log = logging.getLogger(__name__)
OF_THE_QUERY = {400, 413, 414, 422, 431}
"""Statuses by which a service says that it does not take what it was asked for."""

PLAIN_QUERY = "water"
"""What every service takes: one that refuses it too does not refuse a query of the agent's."""


class WebService:
    """A service that searches the live web, whose pages are then fetched from where they stand.

    Args:
        service: what it is called in messages.
        url: where it is.
        settings: what is asked of it besides the query; empty values stay unsaid.
        key_variable: the environment variable that holds its key.
        allow: networks whose pages may be opened although they are private; see NetworkPolicy.
        per_second: most searches a second.
        timeout_s: seconds to wait for it.
        retries: what to do when it fails.

    Raises:
        UsageError: ``url`` cannot be used.
    """

    name: str
    external = True

    def __init__(
        self,
        service: str,
        *,
        url: str,
        settings: Mapping[str, object],
        key_variable: str,
        allow: Sequence[str],
        per_second: float | None,
        timeout_s: float,
        retries: Retries | None,
    ) -> None:
        self._url = web_address(url, of=self.name)
        self._settings = {key: value for key, value in settings.items() if value}
        if isinstance(allow, str) or not all(isinstance(text, str) for text in _listed(allow)):
            raise UsageError(
                f"allow={allow!r} must be a list of networks, such as ['10.1.2.0/24']."
            )
        self._pages = PageFetcher(NetworkPolicy(allow=tuple(allow)))
        self._asker = Asker(
            service,
            key_variable=key_variable,
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

    def open(self, id_or_url: str) -> Passage | None:
        """Fetch a page of the web; see PageFetcher for what is refused."""
        return self._pages.fetch(id_or_url)

    def _posted(self, body: Mapping[str, object], headers: Mapping[str, str]) -> Answer:
        """The reply to a request in JSON, with the settings in it."""
        return self._asker.ask(
            "POST",
            self._url,
            content=json.dumps({**body, **self._settings}),
            headers={"Content-Type": "application/json", **headers},
        )

    def _hits(self, answer: Answer, key: str, top_k: int, **fields: str) -> list[Hit]:
        """The hits of a reply whose list ``key`` holds them; see ``web_hits`` for the fields."""
        found = read_object(self._asker, accepted(self._asker, answer))
        return web_hits(read_list(self._asker, answer, found, key), top_k, **fields)


def checked_query(query: str, *, most: int) -> str:
    """Return the query as it is sent: without blanks around it, and encodable.

    Raises:
        AgentFaultError: It is blank, or longer than ``most`` characters; nothing is sent then.
    """
    text = query.strip().encode("utf-8", "replace").decode("utf-8")
    if not text:
        raise AgentFaultError("bad_arguments", "the query is blank: say what to search for.")
    if len(text) > most:
        raise AgentFaultError(
            "bad_arguments", f"the query has {len(text)} characters; at most {most} are allowed."
        )
    return text


def accepted(asker: Asker, answer: Answer) -> Answer:
    """Return a reply of status 2xx.

    Raises:
        AgentFaultError: The service does not take the query.
        RuntimeFailure: Anything else: a key that is refused, an address without such a service ...
    """
    if 200 <= answer.status < 300:
        return answer
    if answer.status in OF_THE_QUERY:
        _log.info("%s: status %d: %s", asker.service, answer.status, answer.excerpt())
        raise AgentFaultError(
            "bad_arguments", f"the search service does not take this query ({answer.status})."
        )
    raise asker.failure(answer)


def read_object(asker: Asker, answer: Answer) -> dict[str, Any]:
    """Read a reply that is one JSON object.

    Raises:
        RuntimeFailure: It is none.
    """
    try:
        found = json.loads(answer.content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise asker.no_answer(answer, "a reply that is no JSON object")
    return found


def read_list(asker: Asker, answer: Answer, found: Mapping[str, Any], key: str) -> list[Any]:
    """Read the list under ``key``; one that is missing is never taken for no results.

    Raises:
        RuntimeFailure: There is none.
    """
    entries = found.get(key)
    if not isinstance(entries, list):
        raise asker.no_answer(answer, f"a reply without a list {key!r}")
    return entries


def web_hits(
    entries: Iterable[Any], top_k: int, *, url: str, title: str, snippet: str, score: str = ""
) -> list[Hit]:
    """Turn a service's entries into hits; a page's id is its address.

    Args:
        entries: JSON objects, the best first; one without an address of the web, or with one too
            long to be shown whole, is left out, and of several with the same the first counts.
        top_k: most hits.
        url: key of the address.
        title: key of the title.
        snippet: key of the text.
        score: key of the score; where there is none, it is one over the place, from 1.
    """
    hits: dict[str, Hit] = {}
    for entry in entries:
        if not isinstance(entry, Mapping):
            continue
        address = one_line(entry.get(url))
        if not address.startswith(("http://", "https://")) or len(address) > LONGEST_ID:
            continue
        if address in hits:
            continue
        hits[address] = Hit(
            id=address,
            title=one_line(entry.get(title)),
            score=number(entry.get(score), otherwise=1.0 / (len(hits) + 1)),
            snippet=text_of(entry.get(snippet)).strip(),
            url=address,
        )
        if len(hits) == top_k:
            break
    return list(hits.values())


def text_of(value: object) -> str:
    """A text of a reply, ``""`` for anything else; half surrogate pairs become ``?``."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def one_line(value: object) -> str:
    """A text of a reply in one line."""
    return " ".join(text_of(value).split())


def number(value: object, *, otherwise: float) -> float:
    """A finite number of a reply."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
        return otherwise
    return float(value) if value == value else otherwise  # NaN is no number


def settings_text(name: str, settings: Mapping[str, object]) -> str:
    """A fingerprint: the backend's name and what its results depend on, never a key."""
    said = " ".join(f"{key}={value!r}" for key, value in sorted(settings.items()) if value)
    return f"{name} {said}".strip()


def _listed(value: object) -> Sequence[object]:
    """The entries of a list, or one that is no entry of any."""
    return value if isinstance(value, Sequence) else [None]


def check_choice(option: str, value: str, choices: Iterable[str]) -> str:
    """Return ``value`` if it is among ``choices``.

    Raises:
        UsageError: It is not.
    """
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise UsageError(f"{option}={value!r} is not known; choose one of {', '.join(known)}.")
    return value
