r"""Cut LaTeX or plain mathematics into tokens. What is not known is an error, never skipped."""

from __future__ import annotations

import re
from typing import NamedTuple

from toolenvs.grading.nodes import ReadError
from toolenvs.grading.numerals import read_repeating

MAX_TOKENS = 4000


class Token(NamedTuple):
    """``kind``: num sym const func op open close command begin finish (of a matrix) or end."""

    kind: str
    text: str
    spaced: bool = False
    """True when space stands before it."""


END = Token("end", "")

_TRIG = ("sin", "cos", "tan", "cot", "sec", "csc")
FUNCTIONS: dict[str, str] = {
    **{name: name for name in (*_TRIG, "ln", "log", "exp", "sinh", "cosh", "tanh")},
    **{f"arc{name}": f"a{name}" for name in _TRIG},
    **{f"a{name}": f"a{name}" for name in ("sin", "cos", "tan")},
    "lg": "log",
}
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi "
    "rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon "
    "Phi Psi Omega ell"
)
GREEK = frozenset(_GREEK_NAMES.split())
_OPERATORS: dict[str, str] = {
    "cdot": "*", "times": "*", "ast": "*", "div": "/", "pm": "±", "mp": "∓", "cup": "∪",
    "cap": "∩", "setminus": "∖", "backslash": "∖", "in": "∈", "le": "≤", "leq": "≤",
    "leqslant": "≤", "ge": "≥", "geq": "≥", "geqslant": "≥", "ne": "≠", "neq": "≠", "lt": "<",
    "gt": ">", "vert": "|", "mid": "|", "lvert": "|", "rvert": "|", "colon": ":",
    "over": "over", "choose": "choose",
}  # fmt: skip
_COMMANDS = frozenset(
    {"frac", "sqrt", "binom", "lfloor", "rfloor", "lceil", "rceil", "degree", "circ"}
    | {"emptyset", "varnothing"}
)
_MATRICES = frozenset({"pmatrix", "bmatrix", "matrix", "Bmatrix", "smallmatrix"})
_CONSTANTS = {"pi": "pi", "infty": "oo", "infinity": "oo", "inf": "oo"}
_BARE_COMMANDS = {"sqrt": "sqrt", "cbrt": "cbrt", "abs": "abs", "floor": "floor", "ceil": "ceil"}

NAMES = frozenset({*FUNCTIONS, *GREEK, *_CONSTANTS, *_BARE_COMMANDS})
"""Words that mean mathematics when they stand alone."""

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<repeating>(?P<whole>[0-9]*)\.(?P<decimals>[0-9]*)\\(?:overline|bar)\{(?P<period>[0-9]+)\})
    |\\(?P<edge>begin|end)\{(?P<environment>[a-zA-Z]+)\}
    |\\(?P<decoration>overline|underline|vec|hat|bar|tilde|mathbf|mathcal|mathbb|boldsymbol)
        (?:\s*\{(?P<decorated>[a-zA-Z]{1,8})\}|\s+(?P<letter>[a-zA-Z]))
    |(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    |(?P<command>\\[a-zA-Z]+)
    |(?P<escape>\\[{}|\\])
    |(?P<word>[a-zA-Z]+)
    |(?P<power>\*\*)
    |(?P<operator><=|>=|!=|==|[-+*/^_=<>±∓∪∩∖∈≤≥≠!|,;:&'°])
    |(?P<open>[(\[{])
    |(?P<close>[)\]}])""",
    re.VERBOSE,
)
_ASCII_RELATIONS = {"<=": "≤", ">=": "≥", "!=": "≠", "==": "="}


def tokenize(text: str) -> list[Token]:
    """Cut ``text``.

    Raises:
        ReadError: It holds a character or command that no answer needs, or is too long.
    """
    tokens: list[Token] = []
    index = 0
    spaced = False
    while index < len(text):
        match = _TOKEN.match(text, index)
        if match is None:
            raise ReadError(f"unexpected {text[index]!r}")
        index = match.end()
        if match.lastgroup == "space":
            spaced = True
            continue
        tokens += _cut(match, spaced)
        spaced = False
        if len(tokens) > MAX_TOKENS:
            raise ReadError("too long")
    return tokens


def _cut(match: re.Match[str], spaced: bool) -> list[Token]:
    text = match[0]
    if match["repeating"]:
        value = read_repeating(match["whole"], match["decimals"], match["period"])
        return [Token("num", f"{value.numerator}/{value.denominator}", spaced)]
    if match["edge"]:
        return [_edge_of_matrix(match["edge"], match["environment"])]
    if match["decoration"]:
        name = f"\\{match['decoration']}{{{match['decorated'] or match['letter']}}}"
        return [Token("sym", name, spaced)]
    if match["number"]:
        return [Token("num", text, spaced)]
    if match["command"]:
        return [_command(text[1:], spaced)]
    if match["word"]:
        return _word(text, spaced)
    if match["power"]:
        return [Token("op", "^", spaced)]
    if match["escape"]:
        kind = {"\\{": "open", "\\}": "close"}.get(text, "op")
        return [Token(kind, "|" if text == "\\|" else text, spaced)]
    if match["operator"]:
        return [Token("op", _ASCII_RELATIONS.get(text, text), spaced)]
    return [Token("open" if match["open"] else "close", text, spaced)]


def _edge_of_matrix(edge: str, environment: str) -> Token:
    if environment not in _MATRICES:
        raise ReadError(f"unexpected environment {environment!r}")
    return Token("begin" if edge == "begin" else "finish", environment)


def _command(name: str, spaced: bool) -> Token:
    for kind, table in (("func", FUNCTIONS), ("const", _CONSTANTS), ("op", _OPERATORS)):
        if name in table:
            return Token(kind, table[name], spaced)
    if name in GREEK:
        return Token("sym", f"\\{name}", spaced)
    if name in _COMMANDS:
        return Token("command", name, spaced)
    raise ReadError(f"unknown command \\{name}")


def _word(word: str, spaced: bool) -> list[Token]:
    """Read a run of letters: a name known in full, else a product of at most three variables."""
    if word in FUNCTIONS or word in _CONSTANTS:
        return [_command(word, spaced)]
    if word in _BARE_COMMANDS:
        return [Token("command", _BARE_COMMANDS[word], spaced)]
    if word in GREEK:
        return [Token("sym", f"\\{word}", spaced)]
    if len(word) > 3:
        raise ReadError(f"{word!r} is no mathematics")
    return [
        Token("const" if letter in "ie" else "sym", letter, spaced and not at)
        for at, letter in enumerate(word)
    ]
