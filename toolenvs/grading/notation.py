r"""Bring the many ways of writing an answer to one: delimiters, spacing, look-alikes, wrappers.

Only what carries no meaning is taken away; what is not known stays, and then does not parse.
"""

from __future__ import annotations

import re
from collections.abc import Callable

DOLLAR = "＄"
"""The currency sign, so that it is never mistaken for a delimiter of mathematics."""

_MINUS = dict.fromkeys("−–—‐‑﹣－", "-")
_SPACES = dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u200a\u3000", " ")
_FULLWIDTH = {chr(at): chr(at - 0xFEE0) for at in range(0xFF01, 0xFF5F) if chr(at) != DOLLAR}
_NOTHING = dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", "")
_SIGNS = {
    "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "÷": r"\div ", "∗": "*",
    "π": r"\pi ", "∞": r"\infty ", "√": r"\sqrt ", "∅": r"\emptyset ", "⌀": r"\emptyset ",
    "ℝ": r"\mathbb{R}", "⁄": "/", "’": "'", "‘": "'", "“": '"', "”": '"', "º": "°", "˚": "°",
    "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "λ": r"\lambda ",
    "μ": r"\mu ", "σ": r"\sigma ", "φ": r"\phi ", "ω": r"\omega ", "⩽": "≤", "⩾": "≥",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}",
    "¾": r"\frac{3}{4}", "⅕": r"\frac{1}{5}", "⅛": r"\frac{1}{8}",
}  # fmt: skip
_TRANSLATION = str.maketrans({**_FULLWIDTH, **_MINUS, **_SPACES, **_NOTHING, **_SIGNS})
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")

_Replace = Callable[[re.Match[str]], str]


def _turn_brackets(interval: re.Match[str]) -> str:
    """Write ``]a, b]`` as ``(a, b]``, ``]a, b[`` as ``(a, b)`` and ``[a, b[`` as ``[a, b)``."""
    if interval[3] is not None:
        return f"({interval[3]}]"
    return f"{'[' if interval[1] == '[' else '('}{interval[2]})"


_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+")
_SUBSTITUTIONS: tuple[tuple[re.Pattern[str], str | _Replace], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\\\\s*\[\s*[0-9.]+\s*(?:pt|ex|em|mm|cm)\s*\]", r"\\\\ "),  # space between rows
        (r"!=|<>|\\not\s*=", r"\\ne "),
        (r"<=", r"\\le "),
        (r">=", r"\\ge "),
        (r"(?<!\\)\\[()\[\]]", " "),  # delimiters of mathematics
        (r"(?<!\\)\\\$", DOLLAR),
        (r"(?<!\\)\\([%#&_])", r"\1"),
        # Thousands: 7{,}250, 7,\!250, 11,\! 111 and 10\,080 (a thin space), but not "1, 200".
        (r"(?<=[0-9])(?:\{,\}|,\\!|\\,|[\u2009\u202f])\s*(?=[0-9]{3}(?![0-9]))", ""),
        (r"[\u2009\u202f]", " "),
        (r"\\(?:left|right)\s*(?=[()\[\]|/]|\\[{}|]|\\[lr](?:brace|brack|vert)\b)", ""),
        (r"\\(?:left|right)\s*\.", ""),
        (r"\\[bB]igg?[lrm]?(?![a-zA-Z])", ""),
        (r"\\(?:displaystyle|textstyle|limits|rm|bf|it)(?![a-zA-Z])", " "),
        (r"(?<!\\)\\[!,;:> ]|\\q?quad(?![a-zA-Z])", " "),
        (r"(?<=[^\s=<>≤≥~])~(?=[^\s=<>≤≥~])", " "),  # a tie; elsewhere it says "about"
        (r"\\(?:[dtc]|nice|s)frac(?![a-zA-Z])", r"\\frac"),
        (r"\\[dt]binom(?![a-zA-Z])", r"\\binom"),
        (r"\\lbrace(?![a-zA-Z])", r"\\{"),
        (r"\\rbrace(?![a-zA-Z])", r"\\}"),
        (r"\\lbrack(?![a-zA-Z])", "["),
        (r"\\rbrack(?![a-zA-Z])", "]"),
        (r"\\(?:mbox|textbf|textit|textrm|textnormal|textsf|texttt|mathsf|mathit)\b", r"\\text"),
        (r"\\(?:mathrm|operatorname\*?)\s*\{\s*([a-zA-Z])\s*\}", r" \1 "),
        (r"\\(?:mathrm|operatorname\*?)\s*\{\s*(arc)?(sin|cos|tan|cot|sec|csc)\s*\}", r"\\\1\2 "),
        (r"\\mathrm\b", r"\\text"),
        (r"\\(?:text|mathbf|boldsymbol|bm)\s*\{\s*([-+]?[0-9][0-9.,]*)\s*\}", r" \1 "),
        (r"\\text\s*\{[\s,]*(and|or)\s*\}", r" \1 "),
        (r"\\text\s*\{\s*\}", " "),
        (
            r"[(\[]\s*\\begin\s*\{array\}\s*\{[clr|\s]*\}(.*?)\\end\s*\{array\}\s*[)\]]",
            r"\\begin{pmatrix}\1\\end{pmatrix}",
        ),
        (r"^([\[\]])([^\[\]]+)\[$|^\]([^\[\]]+)\]$", _turn_brackets),  # ]a, b[
        (r"\\langle(?![a-zA-Z])", "("),
        (r"\\rangle(?![a-zA-Z])", ")"),
        (r"(?<=[0-9])\s*[xX]\s*(?=10\s*\^)", r"\\times "),  # 6.02 x 10^23
    )
)
_LEAD = re.compile(
    r"(?:(?:thus|so|therefore|hence),?\s+)?(?:(?:the|my|our)\s+)?(?:final\s+)?"
    r"answer(?:\s+is\s*:?|\s*:)\s*|=\s*",
    re.IGNORECASE,
)
_SIGN_WORD = re.compile(r"^(?:negative|minus)\s+(?=[0-9.\\(" + DOLLAR + "])", re.IGNORECASE)
_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")
_WRAPPERS = (("**", "**"), ("`", "`"), ('"', '"'), ("'", "'"), ("``", "''"))


def normalize(text: str) -> str:
    r"""Return ``text`` without what means nothing.

    >>> normalize(r"$\left(\dfrac{1}{2},\,3\right).$")
    '(\\frac{1}{2}, 3)'
    """
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda m: f"^{{{m[0].translate(_SUPERSCRIPTS)}}}", text)
        text = text.translate(_TRANSLATION)
    text = " ".join(text.split())
    for pattern, replacement in () if text.isalnum() else _SUBSTITUTIONS:
        text = pattern.sub(replacement, text)
    text = _strip(_undelimit(text))
    lead = _LEAD.match(text)
    return _SIGN_WORD.sub("-", _strip(text[lead.end() :]) if lead else text)


def unwrap_text(text: str) -> str:
    r"""Return ``text`` with each ``\text{...}`` replaced by what it holds."""
    return " ".join(_TEXT.sub(r" \1 ", text).split()) if "\\text" in text else text


def split_items(text: str, *, grouped: bool) -> tuple[list[str], str]:
    """Split a list at its top-level commas, semicolons and the words ``and``, ``or``.

    Args:
        text: a normalized text.
        grouped: True where ``1,000`` is one number, as outside brackets.

    Returns:
        The items, stripped, and what separates them: ``""`` for one item, ``","``, ``"and"`` or
        ``"or"``.
    """
    thousands = _thousands_commas(text) if grouped else frozenset()
    marks = _top_level(_SEPARATOR, text)
    joiner = ""
    items: list[str] = []
    piece = ""
    start = 0
    for match in marks:
        piece += text[start : match.start()]
        start = match.end()
        if match.start() in thousands:
            continue
        items.append(piece.strip())
        piece = ""
        joiner = match[0] if match[0] in ("and", "or") else joiner or ","
    items.append((piece + text[start:]).strip())
    # In "3, 5, and 7" the word follows a comma.
    last = len(items) - 1
    items = [item for at, item in enumerate(items) if item or at in (0, last) or joiner == ","]
    return items, joiner if len(items) > 1 else ""


def outer_brackets(text: str) -> tuple[str, str, str] | None:
    """Split ``(a, b]`` into its opening, content and closing, if one pair holds all of it."""
    opening = text[:2] if text.startswith("\\{") else text[:1]
    if opening not in ("(", "[", "{", "\\{"):
        return None
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += 1 if match[0] in _OPENING else -1
        if depth == 0:
            inner = text[len(opening) : match.start()].strip()
            return (opening, inner, match[0]) if match.end() == len(text) else None
    return None


_OPENING = ("(", "[", "{", "\\{", "\\begin")
_BRACKET = re.compile(r"\\[{}]|[()\[\]{}]|\\(?:begin|end)(?![a-zA-Z])")
_SEPARATOR = re.compile(r",|;|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z])")
_NUMBER_RUN = re.compile(r"(?<![0-9.])[0-9]+(?:,[0-9]+)+")
THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+")


def _top_level(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return the matches of ``pattern`` that no bracket encloses."""
    marks = [(m.start(), m, True) for m in pattern.finditer(text)]
    marks += [(m.start(), m, False) for m in _BRACKET.finditer(text)]
    found: list[re.Match[str]] = []
    depth = 0
    for _, match, wanted in sorted(marks, key=lambda mark: mark[0]):
        if not wanted:
            depth += 1 if match[0] in _OPENING else -1
        elif not depth:
            found.append(match)
    return found


def _thousands_commas(text: str) -> frozenset[int]:
    """Return where commas stand in numbers such as ``1,234,567``, each well-formed as a whole."""
    return frozenset(
        run.start() + at
        for run in _NUMBER_RUN.finditer(text)
        if THOUSANDS.fullmatch(run[0])
        for at, char in enumerate(run[0])
        if char == ","
    )


def _undelimit(text: str) -> str:
    """Take away ``$`` that delimit mathematics; one that stands alone is a currency sign."""
    count = text.count("$")
    if not count:
        return text
    if count % 2:
        return text.replace("$", DOLLAR) if count == 1 else text
    return text.replace("$", " ")


def _strip(text: str) -> str:
    """Take away spaces, quotes, emphasis and the full stop around the answer."""
    for _ in range(4):
        before = text
        text = text.strip(" \t\r\n").rstrip(",;: ")
        for opening, closing in _WRAPPERS:
            inner = text[len(opening) : -len(closing)]
            whole = text.startswith(opening) and text.endswith(closing)
            if whole and inner and closing not in inner:
                text = inner
        if text.endswith("\\\\") or (text.endswith(".") and not text.endswith("..")):
            text = text[:-1].rstrip("\\")
        if text == before:
            break
    return text
