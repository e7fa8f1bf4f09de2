"""From bytes to text: encodings, and markup of any kind."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolenvs.web.markup import plain_text
from toolenvs.web.text import decoded, read_text

HTML = "text/html"


@pytest.mark.parametrize(
    ("content", "content_type", "text"),
    [
        ("naïve €".encode(), "text/html; charset=utf-8", "naïve €"),
        ("naïve €".encode(), "", "naïve €"),
        ("naïve €".encode("cp1252"), "", "naïve €"),
        ("naïve €".encode("cp1252"), 'text/html; charset="ISO-8859-1"', "naïve €"),
        ("\ufeffnaïve".encode(), "text/html; charset=latin-1", "naïve"),
        ("naïve".encode("utf-16"), "", "naïve"),
        ("日本".encode("shift_jis"), "text/html; charset=Shift_JIS", "日本"),
        ("中文".encode("gb18030"), "text/html; charset=gb2312", "中文"),
        ('<meta charset="koi8-r">да'.encode("koi8-r"), "", '<meta charset="koi8-r">да'),
        ("naïve".encode(), "text/html; charset=no-such", "naïve"),
        ("naïve".encode(), "text/html; charset=punycode", "naïve"),
        ("naïve".encode(), "text/html; charset=zlib", "naïve"),
        ("naïve".encode()[:3], "", "na�"),
    ],
)
def test_the_encoding_is_found_as_browsers_do(content: bytes, content_type: str, text: str) -> None:
    """Mark, header, the page's own word, UTF-8, Windows-1252; never a codec that is no text's."""
    assert decoded(content, content_type) == text


@given(st.binary(max_size=300), st.sampled_from(["", "utf-8", "utf-16", "big5", "x"]))
def test_any_bytes_are_decoded(content: bytes, charset: str) -> None:
    """Into text that encodes again."""
    decoded(content, f"text/html; charset={charset}").encode()


def test_the_text_is_the_article() -> None:
    """Without the menu, where trafilatura is installed."""
    menu = "<nav>" + "".join(f'<a href="/{n}">Menu {n}</a>' for n in range(20)) + "</nav>"
    body = "<article><h1>Lyon</h1>" + "<p>Lyon lies on the Rhône and the Saône.</p>" * 5
    page = read_text(f"<html><body>{menu}{body}</article></body></html>".encode(), HTML)
    assert "Lyon lies on the Rhône" in page.text
    assert "Menu 3" not in page.text


def test_without_trafilatura_all_that_is_visible_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is no need."""
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    page = read_text(b"<title>T</title><nav>Menu</nav><p>Lyon <b>lies</b>", HTML)
    assert page == ("T", "Menu\nLyon lies")


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("a<br>b<p>c</p>d", "a\nb\nc\nd"),
        ("1 < 2 &lt; 3", "1 < 2 < 3"),
        ("<SCRIPT>if (a<b) x()</SCRIPT>after", "after"),
        ("<style>p{}</style >after", "after"),
        ("a<!-- b <p> -->c", "ac"),
        ("<!doctype html><?xml x?>a", "a"),
        ("<td>a</td><td>b</td>", "a b"),
        ("<script>never ends", "never ends"),
        ("<!-- never ends", ""),
        ("a <b", "a"),
        ("", ""),
    ],
)
def test_tags_are_taken_out(markup: str, text: str) -> None:
    """And what is not shown; blocks are lines."""
    assert plain_text(markup) == text


PIECES = [
    "<",
    ">",
    "<!--",
    "-->",
    "<script>",
    "</script>",
    "<p ",
    "&lt;",
    "a",
    "</",
    '"',
    "<title>",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=20).map("".join))
def test_any_markup_is_read(markup: str) -> None:
    """Nothing raises, by either way."""
    plain_text(markup)
    read_text(markup.encode("utf-8", "replace").replace(b"\x00", b""), HTML)


@pytest.mark.parametrize("piece", ["<!--", "<script>", "<p", "<", "</title", "<a href='", "&"])
def test_a_hostile_page_ends_in_time(piece: str) -> None:
    """What never closes is not searched for again and again."""
    for repeat in (plain_text, lambda text: read_text(text.encode(), HTML)):
        call: Any = repeat
        call(piece * (900_000 // len(piece)))
