r"""The normal forms of a short answer: what of its spelling does not matter, and what does.

What does not matter: case, articles before a word, white space, quotation marks, brackets, commas,
marks at the end of a word, markdown emphasis, which dash or apostrophe was typed, full-width and
composed characters, commas between thousands, the points of initials, ``&`` for *and*, ``percent``
for ``%``, and whether what a mark joins is written as one word or as two: a hyphen, point, colon
or underscore between two letters or a letter and a digit (``Spider-Man``, ``F-16``, ``No.5``), a
slash or asterisk between two letters (``AC/DC``).

What does: digits, decimal points, every symbol that stands at a word (``C++``, ``C#``, ``A+``,
``$5M``, ``5%``, ``.NET``), the letter *a* that ends a name (``Vitamin A``), raised digits (``10²``
is ``10^2``), the order of the words, and every mark that may be one of calculating:

- a minus before a digit is a sign, unless it joins a word to it: ``-8``, ``Lat:-5``, ``x/-5``; and
  also where it joins a measure to it: ``USD-5``, ``pH-7``, ``UTC-5``, ``1e-8``;
- a slash or asterisk beside a digit divides or multiplies: ``km/5``, ``x*5``, ``9/11``;
- behind a digit, ``!``, feet and inches (``5'``) and a minus (``10-``, ``Ca2-``) count, and behind
  up to three letters a minus (``A-``, ``Cl-``); behind a longer word they do not (``Yahoo!``).

Two hyphens are one dash: a sign before a number, a joint between two, else a gap.

All is done by regular expressions in linear time.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

_DASHES = frozenset("\u2212\u2043\u02d7")  # besides all of category Pd
_APOSTROPHES = frozenset("`\u00b4\u2018\u2019\u201a\u201b\u02bb\u02bc\u02b9\u2032\u2035")
_QUOTES = frozenset(
    '"\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u2033\u300c\u300d\u300e\u300f'
)
_MARKS_OF_TRADE = frozenset("\u2122\u2120\u00ae\u00a9")
_KEPT = frozenset("%‰‱#@*\\/§-.^'&,:_!″")
"""Punctuation that is not simply a gap: some is part of what it stands at."""

_RAISED = re.compile(r"[⁰¹²³⁴-⁹⁺⁻]+")
_MIXED_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_THIN_GROUP = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{2,3})*,\d{3}(?!,?\d)")
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"&amp;", "&"),
        (r"(?<=\d) ?(?:per ?cent|percent)\b", "%"),
        (r"(?<=\d) (?=[%‰°])", ""),
        (r"(?<=°) (?=[cf]\b)", ""),
        (r"([$€£¥₹]) (?=\d)", r"\1"),
        (r"(?<=\d) ?× ?(?=\d)", "x"),
        (r"(?<=[^\W\d_])\^(?=\d)", ""),
        (r"(?<![\w.])\.(?=\d)", "0."),
        (r"^-+ (?=[\d.])", "-"),
        (r"(?<=\d) -+ (?=\d)", "-"),
        (r"(?<=\d) ([*/:^]) (?=\d)", r"\1"),
        (r"(?<!-)--++(?=\.?\d)", "-"),
        (r"--++", " "),
        (r"\.{2,}", " "),
        (r"(?<![^\W\d_])([^\W\d_])\. ?(?=[^\W\d_]\.)", r"\1"),  # J. K. -> JK.
        (r"(?<!\w)'([^']*)'(?!\w)", r"\1"),  # what stands in single quotes
        (r"(?<!\d)'|'(?=[^\W\d_])", ""),
        (r"(?<='\d)\"|(?<='\d\d)\"", ""),  # 6'2" is 6'2
        (r"&", " and "),
    )
)
_INCHES = re.compile(r'(?<=\d)"(?!\w)')
_CALLED = re.compile(r"(?<![\d!])!+")  # behind a digit it multiplies
# A capital A within a text is a name (Vitamin A deficiency), not an article.
_ARTICLE = re.compile(r'(?:(?<=[\s"])|^)(?:[Tt][Hh][Ee]|[Aa][Nn]|a|(?<![^"])A)\s+(?=["\w])')
_ARTICLES = frozenset({"a", "an", "the"})
_MEASURES = (
    *("utc", "gmt", "lat", "lon", "usd", "eur", "gbp", "jpy", "chf", "cny", "inr", "cad", "aud"),
    *("nzd", "sek", "nok", "dkk", "pln", "rub", "brl", "mxn", "krw", "zar"),
)
_NO_MEASURE = rf"(?<!\b(?:{'|'.join(_MEASURES)}))(?<!\bph)(?<!\de)"
_JOINT = re.compile(
    rf"(?<=[^\W_]){_NO_MEASURE}[-.:_]+(?=[^\W\d_])"
    rf"|(?<=[^\W\d_])[-.:_*/]+(?=[^\W\d_])"
    rf"|(?<=[^\W\d_]){_NO_MEASURE}(?:-|[.:_]+)(?=\d)"
    r"|(?<=[^\W\d_])[.:_]+(?=-\d)"
    r"|(?<=\d)_+(?=\d)"
)
_COMMAS = re.compile(r"[,;]+")
_LEADING = re.compile(r"^(?:[:,/*_\\|]|-(?![\d.$€£¥₹])|\.(?![^\W_]))+")
_TRAILING = ":./,_\\|"
_GRADE = re.compile(r"[^\W\d_]{1,3}-")
_SPACELESS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff]"
)
_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"}
)
_COMBINING = re.compile(r"[\u0300-\u036f]")
_PLACEHOLDER = re.compile(r"""[\s\-.,:;?()\[\]{}<>"'_/\\|~=]*""")


class Forms(NamedTuple):
    """One answer in its normal forms.

    Attributes:
        texts: the ways to write it in one normal form; two answers are one if they share a way.
        words: its words for a comparison by words; scripts without spaces count by character.
        empty: nothing of it is left but marks; ``texts`` then holds it as it stands.
    """

    texts: frozenset[str]
    words: tuple[str, ...]
    empty: bool = False

    @property
    def plain(self) -> str:
        """Its words in one text."""
        return " ".join(self.words)


def read_forms(text: str, *, articles: bool = False, fold: bool = False) -> Forms:
    """Bring ``text`` into its normal forms.

    Args:
        text: any text.
        articles: articles count.
        fold: letters with diacritics are those without.
    """
    unified = unify(text)
    bare = unified if articles else _without_articles(unified)
    ways = [_tokens(_fold(form) if fold else form) for form in dict.fromkeys((bare, unified))]
    words = tuple(_SPACELESS.sub(r" \g<0> ", _JOINT.sub(" ", " ".join(ways[0]))).split())
    if not words:
        kept = unified.casefold()
        return Forms(frozenset({kept}), (kept,) if kept else (), empty=True)
    texts = (_JOINT.sub(joint, " ".join(tokens)) for tokens in ways for joint in ("", " "))
    return Forms(frozenset(" ".join(text.split()) for text in texts), words)


def is_degenerate(text: str) -> bool:
    """Tell whether ``text`` can be no gold answer.

    It is empty, one article (*a* may be the letter of an option), or marks that stand for no
    answer (``---``, ``)``, ``?``). Marks that are a name, as ``!!!`` is a band's, are an answer.
    """
    forms = read_forms(text)
    if forms.empty:
        return bool(_PLACEHOLDER.fullmatch(next(iter(forms.texts))))
    return forms.words in (("an",), ("the",))


def unify(text: str) -> str:
    """Write ``text`` with one character where Unicode and keyboards have several."""
    if not text.isascii():
        text = _unify_characters(text)
    text = " ".join(text.split())
    text = _GROUPED.sub(lambda found: found[0].replace(",", ""), text)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    if text.count('"') % 2:  # one is no quotation mark
        text = _INCHES.sub("\u2033", text)
    return text.strip()


def _unify_characters(text: str) -> str:
    text = "".join(map(_before_nfkc, text))
    text = _RAISED.sub(lambda found: "^" + found[0], text)
    text = _MIXED_FRACTION.sub(" ", text)
    text = _THIN_GROUP.sub(",", text)
    return "".join(map(_after_nfkc, unicodedata.normalize("NFKC", text)))


def _before_nfkc(char: str) -> str:
    if char in _APOSTROPHES:
        return "'"
    if char in _QUOTES:
        return '"'
    drawn_otherwise = char in _MARKS_OF_TRADE or "\ufe00" <= char <= "\ufe0f"
    return "" if drawn_otherwise or unicodedata.category(char) == "Cf" else char


def _after_nfkc(char: str) -> str:
    if char.isascii():
        return char
    category = unicodedata.category(char)
    if category == "Pd" or char in _DASHES:
        return "-"
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if char == "\u2044":  # the slash of a fraction
        return "/"
    return "%" if char == "\u066a" else char


def _without_articles(text: str) -> str:
    if all(word in _ARTICLES for word in re.findall(r"[\w.]+", text.casefold())):
        return text  # the band The The
    return _ARTICLE.sub("", text)


def _tokens(text: str) -> list[str]:
    """The words of ``text`` with what belongs to them, in lower case."""
    text = "".join(char if _stays(char) else " " for char in text)
    text = _CALLED.sub(" ", _COMMAS.sub(" ", text))
    text = unicodedata.normalize("NFKC", text.casefold())
    tokens = []
    emphasis = False
    for token in text.split():
        bare = token.lstrip("*_")
        emphasis = emphasis or bare != token
        if emphasis and bare.endswith(("*", "_")):
            bare, emphasis = bare.rstrip("*_"), False
        tokens.append(_strip(bare))
    return list(filter(None, tokens))


def _stays(char: str) -> bool:
    if char.isalnum() or char in _KEPT:
        return True
    return not char.isspace() and unicodedata.category(char)[0] in "MSLN"


def _strip(token: str) -> str:
    token = _LEADING.sub("", token).rstrip(_TRAILING)
    if token.endswith("-") and not any(map(str.isdigit, token)) and not _GRADE.fullmatch(token):
        token = token.rstrip("-")
    return token if token not in {"#", "@", "*", "'", "^"} else ""


def _fold(text: str) -> str:
    letters = _COMBINING.sub("", unicodedata.normalize("NFD", text.casefold()))
    return unicodedata.normalize("NFC", letters).translate(_PLAIN_LETTERS)
