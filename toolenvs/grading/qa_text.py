r"""The normal forms of a short answer: what of its spelling does not matter, and what does.

What does not matter: case, articles, white space, quotation marks, brackets, commas, marks at the
end of a word, markdown (emphasis, code, a bullet), which dash or apostrophe was typed, full-width
and composed characters, HTML's entities, commas between thousands, the points and blanks of
initials (``J K``), ``&`` for *and*, ``percent`` for ``%``, a blank between a number and its unit
(``qa_units``), and whether what a mark joins is written as one word or as two: a hyphen, point,
colon or underscore between two letters or a letter and a digit (``Spider-Man``, ``F-16``,
``No.5``), a slash or asterisk between two letters (``AC/DC``).

What does: digits, decimal points, every symbol that stands at a word (``C++``, ``C#``, ``A+``,
``$5M``, ``5%``, ``.NET``), letters that are names (``Vitamin A``, ``An Lushan``; see
``qa_articles``), raised digits (``10²`` is ``10^2``, ``x²`` is not ``x2``), the order of
the words, and every mark that may be one of calculating:

- a minus before a digit is a sign, unless it joins a word to it: ``-8``, ``Lat:-5``, ``x/-5``; and
  also where it joins a measure to it: ``USD-5``, ``pH-7``, ``UTC-5``, ``1e-8``;
- the minus of mathematics (U+2212) joins nothing, nor does one between a single small letter and a
  digit: ``5−x``, ``n-1``;
- a dash that begins a word is a sign whatever follows: ``-π``, ``-US$5``, ``-(5)``; before a
  blank too, where it begins the answer, unless a letter follows, as behind a bullet;
- a slash or asterisk beside a digit divides or multiplies: ``km/5``, ``x*5``, ``9/11``; so does a
  slash between units: ``5 m/s``, ``W/m2``;
- behind a digit, ``!``, feet and inches (``5'``) and a minus (``10-``, ``Ca2-``) count, and behind
  up to three letters a minus or two (``A-``, ``Cl-``, ``C--``); behind a longer word they do not
  (``Yahoo!``).

Two hyphens are one dash: a sign at the beginning of a word, a joint between two numbers, else a
gap.

All is done by regular expressions in linear time.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import NamedTuple

from toolenvs.grading.qa_articles import ARTICLES, without_articles
from toolenvs.grading.qa_units import (
    BLANK,
    CURRENCIES,
    CURRENCY_SIGNS,
    POWER,
    spell_measure,
    spell_unit,
)
from toolenvs.grading.qa_values import is_number_word

_DASHES = frozenset("\u2212\u2043\u02d7")  # besides all of category Pd
_APOSTROPHES = frozenset("`\u00b4\u2018\u2019\u201a\u201b\u02bb\u02bc\u02b9\u2032\u2035")
_QUOTES = frozenset(
    '"\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u2033\u300c\u300d\u300e\u300f'
    "\u275d\u275e\u301d\u301e\u301f"
)
_MARKS_OF_TRADE = frozenset("\u2122\u2120\u00ae\u00a9")
_KEPT = frozenset("%‰‱#@*\\/§-.^'&,:_!″")
"""Punctuation that is not simply a gap: some is part of what it stands at."""

_RAISED = re.compile(r"[⁰¹²³⁴-⁹⁺⁻]+")
_SECOND_NUMBER = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞₀-₉])")  # 2½ is 2 1/2, 101₂ is 101 2
_THIN_GROUP = re.compile(r"(?<=\d)[\u2009\u202f](?=\d{3}(?!\d))")
_MINUS = re.compile(r"(?<=[^\W_])\u2212(?=[^\W\d_])|(?<=[^\W\d_])\u2212(?=\d)")
_GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{2,3})*,\d{3}(?!,?\d)")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z]{2,8}\d{0,2});", re.IGNORECASE)
_LANGUAGE = re.compile(r"(?:[a-z][\w+#.-]*)?\s*", re.IGNORECASE)
_SPACELESS = (
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff]"
)
_SIGN = "\u2212"
"""A minus that stands alone or takes away; one that is typed at a word is a hyphen."""
_TAKEN = "\ue001"
"""Stands for a minus that takes away, until other dashes are hyphens."""
_TAKES_AWAY = re.compile(rf"(?<=\w){_SIGN}(?=\w)")

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"\\(?=[%$&#_])", ""),  # TeX's
        (r"(?<![^\W\d_])((?-i:[a-z]))-(?=\d)", rf"\1{_SIGN}"),  # n-1
        (r"(?<=\d) ?(?:per ?cent|percent)\b", "%"),
        (r"(?<=\d) (?=[%‰°])", ""),
        (r"(?<=°) (?=[cfknsew]\b)", ""),
        (rf"(?<!\d)([{CURRENCY_SIGNS}]) (?=\d)", r"\1"),
        (rf"(?<=\d) (?=[{CURRENCY_SIGNS}](?! ?\d))", ""),
        (r"(?<=\d) ?[×x] ?(?=\d)", "x"),
        (rf"(?<={_SPACELESS}) (?={_SPACELESS})", ""),
        (r"(?<=[^\W\d_])\^(?=\d?[-+](?!\w))", ""),  # Ca^2+ is Ca2+
        (r"(?<![\w.])\.(?=\d)", "0."),
        (r"^(?:-+|>) (?=[\"'(\[{*_]*[^\W\d_])", ""),  # a bullet
        (r"^-+ (?=\S)", "-"),
        (r"(?<=\d) -+ (?=\d)", "-"),
        (r"(?<=\d) ([*/:^]) (?=\d)", r"\1"),
        (r"(?<!-)--++(?=\.?\d)|(?<![\w-])--++(?=[^\s-])|(?<=\d)--++(?!\S)", "-"),
        (r"(?<!\w)([^\W\d_]{1,3}--)(?![\w-])|--++", r"\1 "),
        (r"(?<=\w[\"'!?])-(?=[^\W\d_])", " "),  # "Heroes"-era
        (rf"(?<!\w[\"'])(?<![\w)\]}}])-[(\[{{]([\w.,%{CURRENCY_SIGNS}]+)[)\]}}]", r"-\1"),
        (r"(?<!\w[\"'])(?<![\w)\]}])-(?=[\"'(\[{<])", f"{_SIGN} "),
        (r"(?<!\w)<(?=\w)([^<>]*)(?<=\S)>(?!\w)", r"\1"),
        (r"\.{2,}", " "),
        (r"(?<![^\W\d_])([^\W\d_])\. ?(?=[^\W\d_]\.)", r"\1"),  # J. K. -> JK.
        (BLANK, ""),
        (POWER, r"\g<unit>\g<time>"),
        (r"(?<!\w)'((?:[^']|(?<=\w)'(?=\w))*+)'(?!\w)", r"\1"),  # what stands in single quotes
        (r"(?<!\d)'|'(?=[^\W\d_])", ""),
        (r"(?<='\d)\"|(?<='\d\d)\"", ""),  # 6'2" is 6'2
        (r"&", " and "),
    )
)
_INCHES = re.compile(r'(?<=\d)"(?!\w)')
_CALLED = re.compile(r"(?<![\d!])!+")  # behind a digit it multiplies
_MEASURES = "|".join(("utc", "gmt", "lat", "lon", *CURRENCIES))
_NO_MEASURE = rf"(?<!\b(?:{_MEASURES}))(?<!\bph)(?<!\de)"
_JOINT = re.compile(  # dashes or other marks, never both: the dash in x:-y is a sign
    rf"(?<=[^\W_]){_NO_MEASURE}(?:-+|[.:_]+)(?=[^\W\d_])"
    r"|(?<=[^\W\d_])(?:-+|[.:_*/]+)(?=[^\W\d_])"
    rf"|(?<=[^\W\d_]){_NO_MEASURE}(?:-|[.:_]+)(?=\d)"
    r"|(?<=[^\W\d_])[.:_]+(?=-\w)"
)
_INITIALS = re.compile(r"(?<![\w.'])[A-Z](?: [A-Z])+(?![\w.'])")
_COMMAS = re.compile(r"[,;]+")
_LEADING = re.compile(r"^(?:[:,/*_\\|]|-+$|\.(?![^\W_]))+")
_TRAILING = ":./,_\\|"
_DANGLING = re.compile(r"(?<=[^\W\d_]{4})-+$")
_BY_CHARACTER = re.compile(_SPACELESS)
_PLAIN = {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"}
_PLAIN_LETTERS = str.maketrans(_PLAIN | {key.upper(): value for key, value in _PLAIN.items()})
_COMBINING = re.compile(r"[\u0300-\u036f]")
_NAMING = frozenset("!#%&*@§¶‰‱†‡")
_NAMELESS = frozenset(f"=~<>|{_SIGN}")


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
    bare = unified if articles else without_articles(unified)
    joined = map(_as_initials, (bare, unified))
    ways = [_tokens(form, fold=fold) for form in dict.fromkeys((bare, unified, *joined))]
    words = tuple(_BY_CHARACTER.sub(r" \g<0> ", _jointly(ways[0], " ")).split())
    if not words:
        kept = unified.casefold()
        return Forms(frozenset({kept}), (kept,) if kept else (), empty=True)
    texts = (_jointly(tokens, joint) for tokens in ways for joint in ("", " ", r"\g<0>"))
    return Forms(frozenset(" ".join(text.split()) for text in texts), words)


def _as_initials(text: str) -> str:
    """Single capital letters in a row as one word: ``J K Rowling`` as ``J. K. Rowling`` is."""
    return _INITIALS.sub(lambda found: found[0].replace(" ", ""), text)


def _jointly(tokens: list[str], joint: str) -> str:
    """The words with this template for what joins them; a minus that takes away never does."""
    return _TAKES_AWAY.sub("-", _JOINT.sub(joint, " ".join(tokens)))


def is_degenerate(text: str) -> bool:
    """Tell whether ``text`` can be no gold answer.

    It is empty, *an*, *the* or different articles (*a* may be the letter of an option, *The The* is
    a band), or marks that stand for no answer (``---``, ``)``, ``?``, ``=``). Marks that are a
    name, as ``!!!`` is a band's, and other symbols (``%``, ``+``) are an answer.
    """
    if all(map(_says_nothing, unify(text))):
        return True
    words = read_forms(text).words
    articles = set(words) <= ARTICLES
    return articles and (len(set(words)) > 1 or words in (("an",), ("the",)))


def _says_nothing(char: str) -> bool:
    category = unicodedata.category(char)
    return (category[0] in "PZCM" or category == "Sk" or char in _NAMELESS) and char not in _NAMING


def unify(text: str) -> str:
    """Write ``text`` with one character where Unicode and keyboards have several."""
    text = _ENTITY.sub(lambda found: html.unescape(found[0]), _within_fence(text))
    text = text.replace("`", "'")
    if not text.isascii():
        text = _unify_characters(text)
    text = " ".join(text.split())
    text = _GROUPED.sub(lambda found: found[0].replace(",", ""), text)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    if text.count('"') % 2:  # one is no quotation mark
        text = _INCHES.sub("\u2033", text)
    return text.strip()


def _within_fence(text: str) -> str:
    """The inside of a fence of code, without the language that may stand behind its first mark."""
    fenced = text.strip()
    if len(fenced) < 6 or not (fenced.startswith("```") and fenced.endswith("```")):
        return text
    inside = fenced[3:-3]
    first, _, others = inside.partition("\n")
    return others if others.strip() and _LANGUAGE.fullmatch(first) else inside


def _unify_characters(text: str) -> str:
    text = _MINUS.sub(_TAKEN, "".join(map(_before_nfkc, text)))
    text = _RAISED.sub(lambda found: "^" + found[0], text)
    text = _SECOND_NUMBER.sub(" ", text)
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
    if char in "\u2044\u2215":  # slashes of fractions and of division
        return "/"
    return {"\u066a": "%", _TAKEN: _SIGN}.get(char, char)


def _tokens(text: str, *, fold: bool) -> list[str]:
    """The words of ``text`` with what belongs to them, in lower case but for some units."""
    text = "".join(char if _stays(char) else " " for char in text)
    text = _CALLED.sub(" ", _COMMAS.sub(" ", text))
    tokens: list[str] = []
    emphasis = False
    for token in text.split():
        bare = token.lstrip("*_")
        emphasis = emphasis or bare != token
        ended = bare.rstrip(":./,")  # **Lyon**.
        if emphasis and ended.endswith(("*", "_")):
            bare, emphasis = ended.rstrip("*_"), False
        bare = _strip(bare)
        unit = spell_unit(bare) if tokens and is_number_word(tokens[-1]) else None
        tokens += [unit] if unit else _spelled(bare, fold=fold).split()
    return tokens


def _spelled(token: str, *, fold: bool) -> str:
    token = _fold(token) if fold else token
    return spell_measure(token) or unicodedata.normalize("NFKC", token.casefold())


def _stays(char: str) -> bool:
    if char.isalnum() or char in _KEPT:
        return True
    return not char.isspace() and unicodedata.category(char)[0] in "MSLN"


def _strip(token: str) -> str:
    token = _DANGLING.sub("", _LEADING.sub("", token).rstrip(_TRAILING))
    return token if token not in {"#", "@", "*", "'", "^"} else ""


def _fold(text: str) -> str:
    letters = _COMBINING.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", letters).translate(_PLAIN_LETTERS)
