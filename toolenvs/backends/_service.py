"""What backends that ask a service share: the query that is sent, and the reply that is read."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from toolenvs.backends import Hit
from toolenvs.errors import UsageError
from toolenvs.web import AgentFaultError, Answer, Asker

_log = logging.getLogger(__name__)
_OF_THE_QUERY = {400, 413, 414, 422}


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
    if answer.status in _OF_THE_QUERY:
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
        entries: JSON objects, the best first; one without an address of the web is left out, and of
            several with the same address the first counts.
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
        if not address.startswith(("http://", "https://")) or address in hits:
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


def check_choice(option: str, value: str, choices: Iterable[str]) -> str:
    """Return ``value`` if it is among ``choices``.

    Raises:
        UsageError: It is not.
    """
    known = list(choices)
    if value not in known:
        raise UsageError(f"{option}={value!r} is not known; choose one of {', '.join(known)}.")
    return value
