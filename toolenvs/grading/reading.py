r"""Read a whole answer: text, a choice, a date, a quantity, a list, or mathematics.

Everything in it must be understood: an answer of which a part does not parse is a ``ReadError``,
so that no fragment is ever compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from toolenvs.grading.expression import group, read_expression
from toolenvs.grading.moments import read_clock, read_date
from toolenvs.grading.names import read_name, spell_name
from toolenvs.grading.nodes import EMPTY_SET, REALS, Node, ReadError, number, symbols, walk
from toolenvs.grading.notation import DOLLAR, THOUSANDS, outer_brackets, split_items, unwrap_text
from toolenvs.grading.numerals import read_based
from toolenvs.grading.tokens import NAMES
from toolenvs.grading.units import DEGREE, POWER_WORDS, read_unit, split_magnitude, unit_words

MAX_CHARACTERS = 10_000
_MAX_ITEMS = 200
_MAX_NESTING = 12

_SCALARS = frozenset(
    {"num", "sym", "const", "add", "mul", "div", "pow", "neg", "root", "func", "abs", "floor"}
    | {"ceil", "fact", "deg", "binom", "pm", "mp"}
)
_CONTAINERS = frozenset(
    {"tuple", "interval", "set", "list", "union", "inter", "diff", "rel", "in", "matrix"}
)
_SYNONYMS: dict[str, Node] = {
    **dict.fromkeys(("no solution", "no solutions", "empty set", "null set"), EMPTY_SET),
    **dict.fromkeys(("no real solution", "no real solutions"), EMPTY_SET),
    **dict.fromkeys(("all real numbers", "all reals", "all real values"), REALS),
    "dne": Node("text", (), "does not exist"),
}
_BASE_NAMES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
               "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "sixteen": 16}  # fmt: skip

_CHOICE = re.compile(r"(?:(?:option|choice|answer)\s+)?(?:\(([a-z])\)|([a-z])\))", re.IGNORECASE)
_LETTER = re.compile(r"(?:(?:option|choice|answer)\s+)?([a-z])", re.IGNORECASE)
_LABELLED = re.compile(r"\(?([A-Z])(?:\)|[.:]\s)\s*(.+)", re.DOTALL)
# A second label, or a word that takes the first one back: (B) or C, (B) is wrong.
_HEDGE = re.compile(
    r"(?<![A-Za-z\\])(?:[A-J](?![A-Za-z])|[A-Z](?:\)|[.:]\s)|(?:not|or|wrong|incorrect)\b)"
)
_WORDS = re.compile(r"[^\W\d_][^\W\d_'.,;()\- ]*(?:[ '.,;()\-]+[^\W\d_]+)*[.)]?")
_AMBIGUOUS_TUPLE = re.compile(r"[0-9],0[0-9]{2}(?![0-9])")
_RELATION = re.compile(r"[<>=≤≥≠]|\\(?:leq?|geq?|lt|gt|neq?|leqslant|geqslant|in)(?![a-zA-Z])")
_PERCENT = re.compile(r"(.+?)\s*(?:%|(?:\\text\s*\{)?\s*per\s?cent\s*\}?)", re.DOTALL)
_CURRENCY = re.compile(
    rf"([-+]?)\s*((?:US|USD)?\s*[{DOLLAR}€£]|(?:USD|EUR)(?=[\s0-9]))\s*([-+]?.+)", re.DOTALL
)
_DEGREES = re.compile(
    r"(.+?)\s*(?:\^\s*\{?\s*\\circ\s*\}?|°|\\degree)\s*(?:\\text\s*\{\s*)?([CF]?)\s*\}?", re.DOTALL
)
_ORDINAL = re.compile(r"([0-9,]+)\s*\^?\s*\{?\s*(?:\\text\s*\{)?\s*(?:st|nd|rd|th)\s*\}?\s*\}?")
_BASED = re.compile(
    r"\(?([0-9][0-9A-Za-z]*|[A-Za-z]+[0-9][0-9A-Za-z]*|[A-Fa-f]{2,}(?=[\s)]*_\s*\{?\s*16))\)?\s*"
    r"(?:_\s*\{?|\(?\s*base\s|\\text\s*\{\s*\(?base\s)\s*(?:\\text\s*\{)?\s*(?:base\s)?\s*"
    r"([0-9]{1,2}|[a-z]+)[\s)}]*"
)
_TAIL = re.compile(rf"(?<![A-Za-z\\])[A-Za-z{DOLLAR}€£¢][A-Za-z{DOLLAR}€£¢.\s/^{{}}1-9-]*$")
_SCIENTIFIC = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]{1,4}")
_TAIL_LENGTH = 60
_LETTER_UNITS = frozenset("msghlL")


def read_answer(text: str, *, like: Node | None = None) -> Node:
    """Read the whole of a normalized answer.

    Args:
        text: what ``notation.normalize`` returned.
        like: the gold answer; where ``text`` could be read in two ways, the one of its form is
            taken (``12m`` is 12 metres beside ``12 m`` and 12 times m beside ``3m``).

    Raises:
        ReadError: It is empty, too long, or not understood as a whole.
    """
    if not text or len(text) > MAX_CHARACTERS:
        raise ReadError("empty" if not text else "too long")
    plain = unwrap_text(text)
    if _WORDS.fullmatch(plain) and "\\" not in plain:
        text = plain
    whole = read_choice(plain, like) or _read_moment(plain)
    if whole is not None:
        return whole
    listed = like is not None and like.op == "list" and THOUSANDS.fullmatch(text)
    items, joiner = split_items(text, grouped=not listed)
    if len(items) > _MAX_ITEMS:
        raise ReadError("too many items")
    nodes = [part for item in items for part in _spread(_read_item(item, like, 0))]
    return nodes[0] if len(nodes) == 1 else Node("list", tuple(nodes), joiner or ",")


def read_choice(text: str, like: Node | None = None) -> Node | None:
    """Return the option that ``text`` chooses, or None.

    ``(C)`` and ``C)`` are choices; beside a gold choice also ``C``, ``c``, ``option C`` and a
    labelled option, ``(C) 12``, as long as its text is readable and holds no other label.
    """
    match = _CHOICE.fullmatch(text)
    if match:
        letter = match[1] or match[2]
        if letter.isupper() or (like is not None and like.op == "choice"):
            return Node("choice", (), letter.upper())
        return None
    if like is None or not (like.op == "choice" or (like.op == "sym" and like.text.isupper())):
        return None
    if like.op == "choice":
        match = _LETTER.fullmatch(text)
        if match:
            return Node("choice", (), match[1].upper())
    match = _LABELLED.fullmatch(text)
    if match and not _HEDGE.search(match[2]) and _is_readable(match[2]):
        return Node("choice", (), match[1])
    return None


def _is_readable(text: str) -> bool:
    try:
        read_answer(text)
    except ReadError:
        return False
    return True


def canonical_text(text: str) -> str:
    """Return words in their one spelling: no case, article, quotes or outer punctuation."""
    words = unwrap_text(text).casefold().strip(" .,;:!?\"'").split()
    if len(words) > 1 and words[0] in ("the", "a", "an"):
        words = words[1:]
    return " ".join(words)


def _read_moment(text: str) -> Node | None:
    for op, read in (("date", read_date), ("time", read_clock)):
        moment = read(text)
        if moment is not None:
            return Node(op, (), moment)
    return None


def _read_item(text: str, like: Node | None, nesting: int) -> Node:
    if nesting > _MAX_NESTING:
        raise ReadError("nested too deeply")
    words = _read_words(text)
    if words is not None:
        return words
    brackets = outer_brackets(text)
    if brackets is not None:
        return _read_brackets(*brackets, like, nesting)
    readers: tuple[Callable[[str, Node | None, int], Node | None], ...] = (
        _read_named,
        _read_based,
        _read_percent,
        _read_ordinal,
        _read_currency,
        _read_degrees,
        _read_quantity,
        _read_ratio,
    )
    for read in readers:
        node = read(text, like, nesting)
        if node is not None:
            return node
    return _read_mathematics(text)


def _read_words(text: str) -> Node | None:
    plain = unwrap_text(text)
    if not _WORDS.fullmatch(plain):
        return None
    if "\\text" not in text:
        bare = [word.strip(".,;()'") for word in plain.replace("-", " ").split()]
        if all(len(word) < 2 for word in bare) or any(word in NAMES for word in bare):
            return None
    elif len(plain) == 1:
        return Node("choice", (), plain) if plain.isupper() else Node("sym", (), plain)
    canonical = canonical_text(plain)
    return _SYNONYMS.get(canonical) or Node("text", (), canonical)


def _read_brackets(opening: str, inner: str, closing: str, like: Node | None, nesting: int) -> Node:
    if not inner:
        if opening == "\\{":
            return EMPTY_SET
        raise ReadError("empty brackets")
    if _AMBIGUOUS_TUPLE.search(inner):
        raise ReadError("a tuple or a thousand")
    items, joiner = split_items(inner, grouped=False)
    if len(items) > _MAX_ITEMS or joiner in ("and", "or"):
        raise ReadError("brackets whose content is no list")
    if opening == "{" and len(items) > 1:
        opening, closing = "\\{", "\\}"
    nodes = [_read_item(item, like, nesting + 1) for item in items]
    if opening == "\\{":
        nodes = [part for node in nodes for part in _spread(node)]
    elif len(nodes) > 1 and any(node.op == "list" for node in nodes):
        raise ReadError("a sign that is both plus and minus in a tuple")
    return group(opening, closing, tuple(nodes))


def _read_named(text: str, like: Node | None, nesting: int) -> Node | None:
    relations = _RELATION.findall(text)
    if relations != ["="]:
        return None
    left, _, right = text.partition("=")
    left = re.sub(r"(?<=,)\s+", "", left.strip())
    parts = read_name(left, like)
    if parts is None:
        return None
    value = _read_item(right.strip(), like, nesting + 1)
    if left.startswith("(") and (value.op != "tuple" or len(value.args) != left.count(",") + 1):
        raise ReadError("a point of another dimension than its name")
    return Node("named", (value, *parts), spell_name(left))


def _read_based(text: str, like: Node | None, nesting: int) -> Node | None:
    match = _BASED.fullmatch(unwrap_text(text) if text.startswith("\\text") else text)
    if match is None:
        return None
    digits, name = match.groups()
    base = int(name) if name.isdigit() else _BASE_NAMES.get(name, 0)
    if read_based(digits, base) is None:
        raise ReadError(f"{digits!r} is no number of base {name}")
    return Node("base", (), f"{digits.lower().lstrip('0') or '0'}_{base}")


def _read_percent(text: str, like: Node | None, nesting: int) -> Node | None:
    match = _PERCENT.fullmatch(text)
    return Node("percent", (_read_mathematics(match[1]),)) if match else None


def _read_ordinal(text: str, like: Node | None, nesting: int) -> Node | None:
    match = _ORDINAL.fullmatch(text)
    return Node("quantity", (_read_mathematics(match[1]),), "ordinal") if match else None


def _read_currency(text: str, like: Node | None, nesting: int) -> Node | None:
    match = _CURRENCY.fullmatch(text)
    if match is None:
        return None
    sign, currency, rest = match.groups()
    inner = _read_quantity(rest, like, nesting)
    unit = read_unit(currency if currency in ("USD", "EUR") else currency[-1]) or ""
    value = _read_mathematics(rest) if inner is None else inner.args[0]
    if inner is not None and inner.text and unit not in inner.text.split():
        unit = " ".join(sorted([unit, *inner.text.split()]))
    return Node("quantity", (Node("neg", (value,)) if sign == "-" else value,), unit)


def _read_degrees(text: str, like: Node | None, nesting: int) -> Node | None:
    match = _DEGREES.fullmatch(text)
    if match is None or re.search(r"\\(?:sin|cos|tan|cot|sec|csc)", text):
        return None
    unit = {"": DEGREE, "C": "celsius", "F": "fahrenheit"}[match[2]]
    return Node("quantity", (_read_mathematics(match[1]),), unit)


def _read_quantity(text: str, like: Node | None, nesting: int) -> Node | None:
    """Read a number and its unit, or None if ``text`` ends in no unit."""
    at = text.find("\\text")
    if at >= 0:
        body, tail = text[:at], unwrap_text(text[at:])
        factor, rest = split_magnitude(tail)
        unit = read_unit(rest, named=_named_units(like)) if rest else ""
        if unit is None:
            raise ReadError(f"{tail!r} is no unit")
    else:
        start = max(0, len(text) - _TAIL_LENGTH)
        match = _TAIL.search(text, start)
        if match is None or not text[: match.start()].strip():
            return None
        body, tail = text[: match.start()], match[0].strip()
        factor, rest = split_magnitude(tail)
        unit = _read_bare_unit(body, rest, like) if rest else ""
        if unit is None:
            return None
    value = _read_mathematics(body)
    if factor != 1:
        value = Node("mul", (value, number(str(factor))))
    return Node("quantity", (value,), unit)


def _read_bare_unit(body: str, tail: str, like: Node | None) -> str | None:
    """Return the unit that bare letters after a number name, None if they are variables."""
    words = re.findall(r"[A-Za-z]+", tail)
    variables = symbols(like) if like is not None else frozenset()
    if variables and all(letter in variables for word in words for letter in word):
        return None
    if any(word in NAMES for word in words):
        return None
    unit = read_unit(tail, named=_named_units(like))
    first = next((word for word in words if word.lower() not in POWER_WORDS), tail)
    known = read_unit(first, strict=True)
    if unit is None or known is not None:
        return unit
    spaced = body[-1:].isspace()
    plain = re.fullmatch(r"[-+]?[0-9.,]+\s*", body) is not None
    wanted = like is not None and any(
        part.text == unit for part in walk(like) if part.op == "quantity"
    )
    if any(len(word) < 3 for word in words):
        letter_unit = words[0] in _LETTER_UNITS and spaced and plain
        return unit if wanted or letter_unit else None
    return unit if spaced else None


def _named_units(like: Node | None) -> frozenset[str] | None:
    """Return the words that the gold answer names as units; None, for any, where it is read."""
    if like is None:
        return None
    units = (part.text for part in walk(like) if part.op == "quantity")
    return frozenset().union(*map(unit_words, units))


def _read_ratio(text: str, like: Node | None, nesting: int) -> Node | None:
    parts = re.split(r":|\\colon(?![a-zA-Z])", text)
    if len(parts) < 2:
        return None
    return Node("ratio", tuple(_read_scalar(part) for part in parts))


def _read_scalar(text: str) -> Node:
    node = _read_mathematics(text)
    if node.op not in _SCALARS:
        raise ReadError("not a number")
    return node


def _read_mathematics(text: str) -> Node:
    """Read an expression; one with a plus-or-minus sign becomes the list of its two values."""
    if _SCIENTIFIC.fullmatch(text.strip()):
        return _read_scientific(text.strip())
    node = read_expression(text)
    _check_form(node)
    if node.op == "rel" or node.op == "in":
        return node
    values = _both_signs(node)
    return node if values is None else Node("list", values, ",")


def _read_scientific(text: str) -> Node:
    """Read ``1.5e-7`` as the decimal it stands for."""
    node = number(format(abs(Decimal(text)), "f"))
    return Node("neg", (node,)) if text.startswith("-") else node


def _check_form(node: Node) -> None:
    """Refuse sets, tuples and relations inside arithmetic."""
    if node.op in _CONTAINERS:
        for part in node.args:
            _check_form(part)
    elif any(part.op not in _SCALARS for part in walk(node)):
        raise ReadError("arithmetic with what is no number")


def _both_signs(node: Node) -> tuple[Node, Node] | None:
    count = sum(part.op in ("pm", "mp") for part in walk(node))
    if not count:
        return None
    if count > 1 or node.op in _CONTAINERS:
        raise ReadError("more than one sign that is both plus and minus")
    return _with_sign(node, 1), _with_sign(node, -1)


def _with_sign(node: Node, sign: int) -> Node:
    if not node.args:
        return node
    args = tuple(_with_sign(part, sign) for part in node.args)
    if node.op not in ("pm", "mp"):
        return Node(node.op, args, node.text)
    right = args[1] if sign > 0 else Node("neg", (args[1],))
    return Node("add", (args[0], right))


def _spread(node: Node) -> tuple[Node, ...]:
    """Return the values of a list that a plus-or-minus sign made, else the node alone."""
    if node.op == "named" and node.args[0].op == "list":
        return tuple(
            Node("named", (value, *node.args[1:]), node.text) for value in node.args[0].args
        )
    return node.args if node.op == "list" and node.text == "," else (node,)
