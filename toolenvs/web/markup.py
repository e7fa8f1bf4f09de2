"""All that is visible of a page of HTML, in one pass and in linear time, whatever the page."""

from __future__ import annotations

import html
import re

_NAME = re.compile(r"</?([a-zA-Z][a-zA-Z0-9-]*)")
_UNSEEN = {"title", "script", "style", "template", "noscript", "svg", "math", "iframe", "object"}
_BLOCKS = {
    *("p", "div", "section", "article", "header", "footer", "nav", "aside", "main", "br", "hr"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "dl", "dt", "dd", "table", "tr"),
    *("pre", "blockquote", "form", "figure", "figcaption", "title", "option", "address"),
}


def plain_text(markup: str) -> str:
    r"""Take the tags out of a page, and what is not shown; blocks become lines.

    >>> plain_text("<p>one <b>two</b><script>x</script><p>three &amp; four")
    'one two\nthree & four'
    """
    seek = _Seeker(markup)
    pieces: list[str] = []
    at = 0
    while (tag := markup.find("<", at)) >= 0:
        pieces.append(markup[at:tag])
        named = _NAME.match(markup, tag)
        if markup.startswith("<!--", tag):
            at = seek.after("-->", tag + 4)
        elif named is None and not markup.startswith(("<!", "<?", "</"), tag):
            pieces.append("<")  # a sign of its own: 1 < 2
            at = tag + 1
        else:
            at = seek.after(">", tag)
            name = named[1].lower() if named else ""
            pieces.append("\n" if name in _BLOCKS else "\t" if name in ("td", "th") else "")
            if name in _UNSEEN and markup[tag + 1] != "/":
                at = seek.closing(name, at)
    pieces.append(markup[at:])
    lines = (" ".join(line.split()) for line in html.unescape("".join(pieces)).split("\n"))
    return "\n".join(filter(None, lines))


class _Seeker:
    """Finds what ends a comment or a tag.

    It remembers the last place of each, so that a page of a million openings that never close is
    not searched to its end for every one of them.
    """

    def __init__(self, markup: str) -> None:
        self._markup = markup
        self._known: dict[str, int] = {}

    def after(self, mark: str, start: int) -> int:
        """The place after the next ``mark``, the end where there is none."""
        return min(len(self._markup), self._next(mark, start) + len(mark))

    def closing(self, name: str, start: int) -> int:
        """The place of the next closing tag, ``start`` where there is none."""
        found = self._next(f"</{name}", start)
        return found if found < len(self._markup) else start

    def _next(self, mark: str, start: int) -> int:
        if self._known.get(mark, -1) < start:
            found = re.compile(re.escape(mark), re.IGNORECASE).search(self._markup, start)
            self._known[mark] = found.start() if found else len(self._markup)
        return self._known[mark]
