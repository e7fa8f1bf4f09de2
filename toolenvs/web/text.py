"""From the bytes of a page to its title and text."""

from __future__ import annotations

import codecs
import html
import logging
import re
from typing import NamedTuple

from toolenvs.web.faults import AgentFaultError
from toolenvs.web.markup import plain_text

_log = logging.getLogger(__name__)

_HTML = {"text/html", "application/xhtml+xml"}
_TEXT = {
    *("application/json", "application/xml", "application/yaml", "application/x-yaml"),
    *("application/javascript", "application/x-ndjson", "application/toml", "application/sql"),
}
_ENCODINGS = {
    *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "ascii", "iso8859-1", "iso8859-9"),
    *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 14, 15, 16)),
    *("cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
    *("koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "cp866", "tis-620"),
    *("gb2312", "gbk", "gb18030", "big5", "big5hkscs", "shift_jis", "cp932", "euc_jp"),
    *("iso2022_jp", "euc_kr", "cp949", "johab"),
}
"""Python's names of the encodings of pages; its others (punycode ...) are no one's text."""
_MEANT = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030"}
"""What browsers read in place of what pages say (WHATWG, Encoding Standard, 4.2)."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META = re.compile(rb"<meta[^>]{0,500}?charset\s{0,20}=\s{0,20}[\"']?\s{0,20}([\w:.-]{1,40})", re.I)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w:.-]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,2000})", re.IGNORECASE)
_HEAD_BYTES, _HEAD_CHARS = 4096, 100_000
_LARGEST_FOR_EXTRACTION = 1_000_000  # characters; a hostile million takes it a few seconds
_BINARY = (b"%PDF-", b"PK\x03\x04", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x1f\x8b", b"\x7fELF")


class PageText(NamedTuple):
    """What of a page can be read; ``title`` is one line, ``""`` if there is none."""

    title: str
    text: str


def check_media_type(content_type: str) -> None:
    """Refuse what is no text, before it is read.

    Args:
        content_type: the header ``Content-Type``, ``""`` if there is none.

    Raises:
        AgentFaultError: The type is none of text.
    """
    media = _media(content_type)
    structured = media.startswith("application/") and media.endswith(("+json", "+xml"))
    if media and not media.startswith("text/") and media not in _HTML | _TEXT and not structured:
        raise AgentFaultError(
            "refused",
            f"the page cannot be shown: it is {media[:60]!r}; HTML, plain text, JSON and XML can.",
        )


def read_text(content: bytes, content_type: str) -> PageText:
    """Read a page: of HTML what a person would read, of other types all of it.

    Args:
        content: the unpacked bytes.
        content_type: the header ``Content-Type``, ``""`` if there is none.

    Raises:
        AgentFaultError: It is no text, whatever its type says.
    """
    media = _media(content_type)
    if content.startswith(_BINARY):
        raise AgentFaultError("refused", "the page cannot be shown: it is a file of another kind.")
    text = decoded(content, content_type)
    if "\x00" in text:
        raise AgentFaultError("refused", "the page cannot be shown: it holds binary data.")
    looks_so = not media and text.lstrip()[:200].lower().startswith(("<!doctype html", "<html"))
    if media in _HTML or looks_so:
        return PageText(_title(text), _article(text))
    return PageText("", text.strip())


def decoded(content: bytes, content_type: str = "") -> str:
    """Decode a page as browsers do: byte order mark, header, the page's own word, then UTF-8.

    What fits none of them is read as Windows-1252, with U+FFFD for what that lacks.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    said = _CHARSET.search(content_type)
    meta = _META.search(content[:_HEAD_BYTES])
    names = [said[1]] if said else []
    names += [meta[1].decode("ascii")] if meta else []
    for name in names:
        encoding = _known_encoding(name)
        if encoding:
            return content.decode(encoding, "replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        # The bound of a body may have fallen between the bytes of one character.
        if error.start >= len(content) - 3:
            return content.decode("utf-8", "replace")
        return content.decode("cp1252", "replace")


def _known_encoding(name: str) -> str:
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
    return _MEANT.get(found, found) if found in _ENCODINGS else ""


def _media(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _title(text: str) -> str:
    found = _TITLE.search(text, 0, _HEAD_CHARS)
    return " ".join(html.unescape(found[1]).split()) if found else ""


def _article(text: str) -> str:
    """The text of a page of HTML: what trafilatura takes for it, else all that is visible."""
    extracted = None
    if len(text) <= _LARGEST_FOR_EXTRACTION:
        try:
            from trafilatura import extract

            extracted = extract(
                text, fast=True, favor_recall=True, include_comments=False, deduplicate=False
            )
        except ImportError:
            _log.debug("trafilatura is not installed: pages are shown with their menus")
        except Exception:  # it is given what anyone wrote
            _log.debug("a page that trafilatura cannot read", exc_info=True)
    return extracted.strip() if extracted else plain_text(text)
