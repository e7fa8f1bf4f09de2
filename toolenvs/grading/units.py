r"""Units of measure: bring their spellings to one, so that two can be compared.

A unit becomes a text of its base words in order with their powers, ``"centimetre^2"``,
``"hour^-1 mile"``. Nothing is converted: 12 cm is not 0.12 m here, since a problem that asks for a
unit asks for that one. A word in no table is a unit of its own (``apple``), in the singular, where
it is allowed: a gold answer may name any unit, an answer only those of the tables and the gold's.
"""

from __future__ import annotations

import re

_SPELLINGS = """
metre: m meter metre | centimetre: cm centimeter centimetre | millimetre: mm millimeter millimetre
kilometre: km kilometer kilometre | inch: in inch inche | foot: ft foot feet | yard: yd yard
mile: mi mile | gram: g gm gram gramme | kilogram: kg kilo kilogram | milligram: mg milligram
pound: lb pound | ounce: oz ounce | ton: ton tonne | second: s sec second | minute: min minute
hour: h hr hour | day: day | week: wk week | month: month | year: yr year
litre: l liter litre | millilitre: ml milliliter millilitre | gallon: gal gallon | cup: cup
quart: qt quart | pint: pt pint
degree: degree deg | radian: rad radian | celsius: celsius centigrade | fahrenheit: fahrenheit
kelvin: kelvin | joule: j joule | watt: w watt | newton: n newton | volt: v volt
hertz: hz hertz | pascal: pa pascal | ampere: amp ampere | mole: mol mole
person: person people | child: child children | man: man men | woman: woman women
vertex: vertex vertices
dollar: dollar usd buck ＄ | euro: euro eur €
sterling: £ | cent: cent ¢ penny pennie pence | unit: unit | acre: acre
"""
_BASES = {
    spelling: name.strip()
    for entry in _SPELLINGS.replace("\n", "|").split("|")
    if ":" in entry
    for name, _, spellings in [entry.partition(":")]
    for spelling in spellings.split()
}
_COMPOUNDS = {"mph": "mile / hour", "kph": "kilometre / hour", "kmh": "kilometre / hour"}
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
POWER_WORDS = ("square", "sq", "cubic", "cu")
_CASED = {"A": "ampere", "L": "litre", "K": "kelvin", "J": "joule", "W": "watt", "N": "newton"}
_CASED["V"] = "volt"
_COUNTED = """
animal apple bag ball balloon banana bead bean bird block book bottle bouquet bowl box boy bracelet
brick bug bus cake candle candy car card cat chair chicken chocolate class coin cookie cow crayon
cube cupcake customer dog doll door duck egg employee eraser fish flower friend fruit game gift girl
goat grape guest hat horse house jar kid lemon letter marble match member mushroom muffin orange
page painting pancake paper passenger patient peach pear pen pencil photo picture piece pig pizza
plant plate player point present problem puppy question rabbit ribbon rock rose row seat sheep shell
shirt shoe slice snack soldier song stamp sticker stone strawberry student teacher team ticket tile
toy tree vehicle vote way window word worker side edge face term digit integer
"""
_THINGS = frozenset(_COUNTED.split())
_IGNORED = frozenset({"of", "the", "a", "an", "each", "old", "total"})
_WORDS_THAT_CHANGE_MEANING = """
not no or and is are was maybe wrong right minus plus less more than below above at least most
about half third quarter halve if for when where only except to percent negative positive zero mod
modulo over by base but nor through ago before after approximately roughly almost root factorial
square squared cubed double triple twice thrice pairwise tenth hundredth thousandth fifth sixth
seventh eighth ninth nope never false incorrect short
"""
_NOT_UNITS = frozenset(_WORDS_THAT_CHANGE_MEANING.split())
_MAGNITUDES = {
    "dozen": 12,
    "hundred": 10**2,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "quadrillion": 10**15,
    "quintillion": 10**18,
    "lakh": 10**5,
    "crore": 10**7,
}
_PIECE = re.compile(r"\s*(?:([a-zA-Z]+)\.?|\^\s*\{?(-?[1-9])\}?|(/)|(\\cdot|\*)|([＄€£¢]))")
_MAX_WORDS = 6

DEGREE = "degree"


def split_magnitude(words: str) -> tuple[int, str]:
    """Take ``million`` and its like from the front: return the factor and the rest."""
    factor = 1
    while True:
        first, _, rest = words.strip().partition(" ")
        key = first.lower().removesuffix("s")
        if key not in _MAGNITUDES:
            return factor, words.strip().removeprefix("of ")
        factor *= _MAGNITUDES[key]
        words = rest


def read_unit(
    text: str, *, strict: bool = False, named: frozenset[str] | None = None
) -> str | None:
    r"""Return the unit that ``text`` names in its one spelling, or None if it names none.

    Args:
        text: words, ``^2``, ``/``; without ``\text``.
        strict: True to know only the units of measure of the tables, and no single letter.
        named: the words that are units besides those of the tables (``unit_words``); None: any.

    Returns:
        The unit, ``""`` for one that says nothing (``units``).

    >>> read_unit("square cm"), read_unit("miles per hour"), read_unit("apples")
    ('centimetre^2', 'hour^-1 mile', 'apple')
    """
    powers: dict[str, int] = {}
    sign = 1
    pending = 1
    last = ""
    for kind, piece in _pieces(text):
        if kind == "over":
            sign = -1
        elif kind == "power":
            if not last or pending != 1 or (strict and last not in _BASES.values()):
                return None
            powers[last] += (int(piece) - 1) * (1 if powers[last] > 0 else -1)
        elif kind == "bad":
            return None
        elif piece.lower() in POWER_WORDS:
            pending = _POWERS[piece.lower()]
        elif piece.lower() in _POWERS and last:
            powers[last] *= _POWERS[piece.lower()]
        else:
            base = _base(piece, strict=strict, named=named)
            if base is None:
                return None
            if base:
                last = base
                powers[base] = powers.get(base, 0) + sign * pending
            pending = 1
    if pending != 1 or (sign < 0 and not any(power < 0 for power in powers.values())):
        return None
    powers.pop("unit", None)
    return " ".join(
        base if power == 1 else f"{base}^{power}" for base, power in sorted(powers.items()) if power
    )


def unit_words(unit: str) -> frozenset[str]:
    """Return the words that a unit is made of."""
    return frozenset(re.findall(r"[^\W\d_]+|[＄€£¢]", unit))


def _pieces(text: str) -> list[tuple[str, str]]:
    for short, full in _COMPOUNDS.items():
        text = re.sub(rf"(?<![a-zA-Z]){short}(?![a-zA-Z])", full, text)
    pieces: list[tuple[str, str]] = []
    index = 0
    text = text.strip()
    while index < len(text):
        match = _PIECE.match(text, index)
        if match is None or len(pieces) > 2 * _MAX_WORDS:
            return [("bad", "")]
        index = match.end()
        word, power, over, times, sign = match.groups()
        if word:
            pieces.append(("over", "") if word.lower() == "per" else ("word", word))
        elif not times:
            pieces.append(("power", power) if power else ("over", "") if over else ("word", sign))
    return pieces or [("bad", "")]


def _base(word: str, *, strict: bool, named: frozenset[str] | None) -> str | None:
    """Return the one spelling of a word, ``""`` for one to pass over, None for no unit."""
    if word in _CASED and not strict:
        return _CASED[word]
    lowered = word.lower()
    if len(word) == 1 and word.isalpha() and (strict or word != lowered):
        return None
    for form in (lowered, lowered.removesuffix("s"), lowered.removesuffix("es")):
        if form in _BASES:
            return _BASES[form]
    if lowered in _IGNORED:
        return "" if not strict else None
    if strict or len(lowered) < 3:
        return None
    single = _singular(lowered)
    if {lowered, single} & _NOT_UNITS or single in _MAGNITUDES:
        return None
    return single if named is None or single in _THINGS | named else None


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
