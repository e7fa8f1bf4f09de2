r"""Read mathematics, LaTeX or plain, into nodes: recursive descent over known tokens only.

Nothing is evaluated here. From loose to tight: relations, unions, sums, products, powers. What
could be meant in two ways (``1/2x`` with a variable below, ``2\frac{3}{2}``) is an error: to
refuse is better than to misread.
"""

from __future__ import annotations

from toolenvs.grading.nodes import EMPTY_SET, REALS, Node, ReadError, number
from toolenvs.grading.numerals import read_integer
from toolenvs.grading.tokens import END, Token, tokenize

MAX_DEPTH = 30

_RELATIONS = "=<>≤≥≠"
_SET_OPS = {"∪": "union", "∩": "inter", "∖": "diff"}
_CLOSERS = {"(": (")", "]"), "[": ("]", ")"), "{": ("}",), "\\{": ("\\}",)}
_REALS = "\\mathbb{R}"


def read_expression(text: str) -> Node:
    """Read the whole of ``text``.

    Raises:
        ReadError: It is not, as a whole, an expression, relation, tuple, set or matrix.
    """
    parser = _Parser(tokenize(text))
    node = parser.stacked(parser.relation())
    parser.expect_end()
    return node


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._bars = 0

    # -- tokens ---------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> Token:
        index = self._at + ahead
        return self._tokens[index] if index < len(self._tokens) else END

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _is(self, kind: str, text: str) -> bool:
        token = self._peek()
        return token.kind == kind and token.text == text

    def _accept(self, kind: str, text: str) -> bool:
        found = self._is(kind, text)
        self._at += found
        return found

    def _expect(self, kind: str, text: str) -> None:
        if not self._accept(kind, text):
            raise ReadError(f"expected {text!r}, found {self._peek().text!r}")

    def expect_end(self) -> None:
        if self._peek() is not END:
            raise ReadError(f"{self._peek().text!r} is left over")

    def _deepen(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ReadError("nested too deeply")

    # -- levels, from loose to tight --------------------------------------------------------------

    def relation(self) -> Node:
        sides = [self._set_operation()]
        signs = ""
        while self._peek().kind == "op" and self._peek().text in _RELATIONS:
            signs += self._next().text
            sides.append(self._set_operation())
        if signs:
            return Node("rel", tuple(sides), signs)
        if self._accept("op", "∈"):
            return Node("in", (sides[0], self._set_operation()))
        return sides[0]

    def stacked(self, top: Node) -> Node:
        r"""Read on where ``\over`` or ``\choose`` puts what was read above something."""
        for word, op in (("over", "div"), ("choose", "binom")):
            if self._accept("op", word):
                return Node(op, (top, self.relation()))
        return top

    def _set_operation(self) -> Node:
        node = self._sum()
        while self._peek().kind == "op" and self._peek().text in _SET_OPS:
            op = _SET_OPS[self._next().text]
            right = self._sum()
            same = node.op == op and op != "diff"
            node = Node(op, (*node.args, right) if same else (node, right))
        return node

    def _sum(self) -> Node:
        terms = [self._signed_term()]
        while self._peek().kind == "op" and self._peek().text in "+-±∓":
            sign = self._next().text
            term = self._signed_term() if sign in "+-" else self._product()
            if sign in "±∓":
                terms = [Node("pm" if sign == "±" else "mp", (_together("add", terms), term))]
            else:
                terms.append(term if sign == "+" else _negate(term))
        return _together("add", terms)

    def _signed_term(self) -> Node:
        negative = False
        while self._is("op", "-") or self._is("op", "+"):
            negative ^= self._next().text == "-"
        if self._is("op", "±") or self._is("op", "∓"):
            op = "pm" if self._next().text == "±" else "mp"
            if negative:
                op = "mp" if op == "pm" else "pm"
            return Node(op, (number("0"), self._product()))
        term = self._product()
        return _negate(term) if negative else term

    def _product(self) -> Node:
        factors = [self._power()]
        while True:
            if self._accept("op", "*"):
                factors.append(self._signed_power())
            elif self._is("op", "/"):
                self._next()
                factors = [self._quotient(factors)]
            elif self._starts_atom():
                self._check_juxtaposed()
                _join(factors, self._power())
            else:
                return _together("mul", factors)

    def _quotient(self, factors: list[Node]) -> Node:
        top = _together("mul", factors)
        bottom = self._signed_power()
        plain = top.op == bottom.op == "num" and not self._is("command", "frac")
        if self._starts_atom() and not plain:
            raise ReadError("what is below the slash is not clear")
        return Node("div", (top, bottom))

    def _signed_power(self) -> Node:
        negative = False
        while self._is("op", "-") or self._is("op", "+"):
            negative ^= self._next().text == "-"
        node = self._power()
        return _negate(node) if negative else node

    def _check_juxtaposed(self) -> None:
        """Refuse ``2 3``, ``x 2`` and ``x{2}``, which could mean several things."""
        before = self._peek(-1)
        if self._is("open", "{") and self._peek(1).kind == "num":
            raise ReadError("a number in braces stands beside something")
        if self._peek().kind == "num" and before.kind in ("num", "sym", "const"):
            raise ReadError("a number stands beside another number or variable")

    def _starts_atom(self) -> bool:
        token = self._peek()
        if token.kind in ("num", "sym", "const", "func", "begin"):
            return True
        if token.kind == "open":
            return token.text != "\\{"
        if token.kind == "command":
            return token.text not in ("rfloor", "rceil", "circ", "degree")
        return token == ("op", "|", token.spaced) and not self._bars

    def _power(self) -> Node:
        node = self._postfix(self._atom())
        if not self._accept("op", "^"):
            return node
        if self._degree_follows():
            return self._postfix(Node("deg", (node,)))
        exponent = self._exponent()
        node = Node("pow", (node, exponent))
        return self._postfix(node)

    def _degree_follows(self) -> bool:
        if self._accept("command", "circ") or self._accept("command", "degree"):
            return True
        names = [("open", "{"), ("command", "circ"), ("close", "}")]
        if all(self._peek(at)[:2] == name for at, name in enumerate(names)):
            self._at += 3
            return True
        return False

    def _postfix(self, node: Node) -> Node:
        count = 0
        while True:
            if self._accept("op", "!"):
                if self._is("op", "!"):
                    raise ReadError("a factorial of a factorial, or a double factorial")
                node = Node("fact", (node,))
            elif self._accept("op", "°") or self._accept("command", "degree"):
                node = Node("deg", (node,))
            else:
                return node
            count += 1
            if count > MAX_DEPTH:
                raise ReadError("too many signs")

    def _exponent(self) -> Node:
        self._deepen()
        negative = False
        while self._is("op", "-") or self._is("op", "+"):
            negative ^= self._next().text == "-"
        node = self._postfix(self._atom())
        if self._accept("op", "^"):
            node = Node("pow", (node, self._exponent()))
        self._depth -= 1
        return _negate(node) if negative else node

    # -- atoms ------------------------------------------------------------------------------------

    def _atom(self) -> Node:
        self._deepen()
        token = self._next()
        node = self._atom_from(token)
        self._depth -= 1
        return node

    def _atom_from(self, token: Token) -> Node:
        kind, text, _ = token
        readers = {
            "num": lambda: self._number(token),
            "const": lambda: Node("const", (), text),
            "sym": lambda: self._variable(text),
            "func": lambda: self._function(text),
            "open": lambda: self._bracketed(text),
            "command": lambda: self._command(text),
            "begin": lambda: self._matrix(text),
        }
        if kind in readers:
            return readers[kind]()
        if text == "|":
            return self._absolute()
        raise ReadError(f"unexpected {text or 'end'!r}")

    def _variable(self, name: str) -> Node:
        return REALS if name == _REALS else Node("sym", (), name + self._subscript())

    def _number(self, token: Token) -> Node:
        """Read a number, mixed (``2 1/3``) if a proper fraction stands beside it."""
        if self._peek().kind != "num" or self._peek(1)[:2] != ("op", "/"):
            return number(token.text)
        top, bottom = self._next(), self._peek(1)
        self._at += 2
        if bottom.kind != "num" or not (
            top.spaced and (token.text + top.text + bottom.text).isdigit()
        ):
            raise ReadError("a number stands beside another")
        return _mixed(number(token.text), number(top.text), number(bottom.text))

    def _subscript(self) -> str:
        if not self._accept("op", "_"):
            return ""
        if not self._accept("open", "{"):
            token = self._next()
            if token.kind not in ("num", "sym", "const"):
                raise ReadError("unexpected subscript")
            return f"_{token.text}"
        parts: list[str] = []
        while not self._accept("close", "}"):
            token = self._next()
            if token.kind not in ("num", "sym", "const", "op"):
                raise ReadError("unexpected subscript")
            parts.append(token.text)
        return "_" + "".join(parts)

    def _function(self, name: str) -> Node:
        base: tuple[Node, ...] = ()
        power: Node | None = None
        if name == "log" and self._accept("op", "_"):
            base = (self._argument(),)
        if self._accept("op", "^"):
            power = self._exponent()
            if power == _negate(number("1")):
                if name not in ("sin", "cos", "tan", "cot", "sec", "csc"):
                    raise ReadError("an inverse that is not clear")
                name, power = f"a{name}", None
        node = Node("func", (self._function_argument(), *base), name)
        return Node("pow", (node, power)) if power else node

    def _function_argument(self) -> Node:
        token = self._peek()
        if token.kind == "open" and token.text in "([{":
            return self._atom()
        factors = [self._power()]
        while self._starts_atom() and self._peek().kind not in ("open", "func"):
            if self._is("command", "sqrt"):
                raise ReadError("what belongs to the function is not clear")
            self._check_juxtaposed()
            factors.append(self._power())
        return _together("mul", factors)

    def _bracketed(self, opening: str) -> Node:
        bars, self._bars = self._bars, 0
        items: list[Node] = []
        if self._peek().kind != "close":
            items.append(self.relation())
            if opening == "{":
                items = [self.stacked(items[0])]
            while opening != "{" and self._accept("op", ","):
                items.append(self.relation())
        closing = self._next()
        if closing.kind != "close" or closing.text not in _CLOSERS[opening]:
            raise ReadError(f"{opening!r} is not closed")
        self._bars = bars
        return group(opening, closing.text, tuple(items))

    def _absolute(self) -> Node:
        self._bars += 1
        inner = self.relation()
        self._expect("op", "|")
        self._bars -= 1
        return Node("abs", (inner,))

    def _command(self, name: str) -> Node:
        if name in ("frac", "binom"):
            node = Node("div" if name == "frac" else name, (self._argument(), self._argument()))
            if self._peek().kind == "num" and not self._peek().spaced:
                raise ReadError("a number stands beside a fraction")
            return node
        if name == "sqrt":
            return Node("root", (self._root_index(), self._root_argument()))
        if name == "cbrt":
            return Node("root", (number("3"), self._function_argument()))
        if name in ("abs", "floor", "ceil"):
            return Node(name, (self._function_argument(),))
        if name in ("lfloor", "lceil"):
            inner = self.relation()
            self._expect("command", f"r{name[1:]}")
            return Node(name[1:], (inner,))
        if name in ("emptyset", "varnothing"):
            return EMPTY_SET
        raise ReadError(f"unexpected \\{name}")

    def _root_index(self) -> Node:
        if not self._accept("open", "["):
            return number("2")
        index = self.relation()
        self._expect("close", "]")
        return index

    def _root_argument(self) -> Node:
        r"""Read what a root is of: a group, one sign, or all digits of ``\sqrt13``."""
        if self._peek().kind == "num":
            return number(self._next().text)
        return self._argument()

    def _argument(self) -> Node:
        r"""Read a group, or one sign as TeX does: ``\frac43`` is 4/3."""
        token = self._peek()
        if token.kind == "num" and len(token.text) > 1:
            if not token.text.isdigit() or len(token.text) > 2:
                raise ReadError("an argument that is not clear")
            self._tokens[self._at] = Token("num", token.text[1:])
            return number(token.text[0])
        if token.kind in ("func", "op", "close"):
            raise ReadError("an argument is missing")
        return self._atom()

    def _matrix(self, name: str) -> Node:
        rows: list[tuple[Node, ...]] = []
        while not self._accept("finish", name):
            row = [self.relation()]
            while self._accept("op", "&"):
                row.append(self.relation())
            rows.append(tuple(row))
            if not self._accept("op", "\\\\") and not self._is("finish", name):
                raise ReadError("unexpected sign in a matrix")
        if len({len(row) for row in rows}) != 1:
            raise ReadError("the rows of a matrix differ in length")
        return Node("matrix", tuple(Node("tuple", row) for row in rows))


def group(opening: str, closing: str, items: tuple[Node, ...]) -> Node:
    """Return what brackets around ``items`` make: a group, tuple, interval or set.

    Raises:
        ReadError: These brackets around so many items mean nothing that is known.
    """
    brackets = opening + closing
    if opening == "\\{":
        return Node("set", items)
    if brackets in ("()", "[]", "{}") and len(items) == 1:
        return items[0]
    if brackets == "()" and items:
        return Node("tuple", items)
    if len(items) == 2 and brackets in ("[]", "[)", "(]"):
        return Node("interval", items, brackets)
    if brackets == "[]" and items:
        return Node("list", items, ",")
    raise ReadError(f"brackets {brackets!r} around {len(items)} items")


def _negate(node: Node) -> Node:
    return node.args[0] if node.op == "neg" else Node("neg", (node,))


def _together(op: str, parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Node(op, tuple(parts))


def _join(factors: list[Node], factor: Node) -> None:
    """Multiply, unless an integer and a fraction of integers make a mixed number."""
    last = factors[-1]
    if last.op == "num" and last.text.isdigit() and factor.op == "div":
        top, bottom = factor.args
        if top.op == bottom.op == "num" and (top.text + bottom.text).isdigit():
            factors[-1] = _mixed(last, top, bottom)
            return
    factors.append(factor)


def _mixed(whole: Node, top: Node, bottom: Node) -> Node:
    if read_integer(top.text) >= read_integer(bottom.text):
        raise ReadError("a mixed number whose fraction is not proper")
    return Node("add", (whole, Node("div", (top, bottom))))
