"""What a column is made of, and the names that the expressions of a query see."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import msgspec


class Origin(msgspec.Struct, frozen=True):
    """What a value or a column is made of.

    Attributes:
        depends: on what a table holds, be it by which of its rows there are.
        partly: so in some of its rows, beside others that are an answer written out.
        literals: the values written in the text that went into what does not depend.
        several: its rows may hold different values, of which some are written.
        chosen: a table decides whether some of its rows are there.
    """

    depends: bool = False
    partly: bool = False
    literals: frozenset[str] = frozenset()
    several: bool = False
    chosen: bool = False

    def __or__(self, other: Origin) -> Origin:
        """What is made of both."""
        return Origin(
            self.depends or other.depends,
            self.partly or other.partly,
            self.literals | other.literals,
            self.several or other.several,
            self.chosen or other.chosen,
        )

    def beside(self, other: Origin) -> Origin:
        """What is the one in some rows and the other in others."""
        differs = self.literals != other.literals or self.depends != other.depends
        return msgspec.structs.replace(
            self | other, several=self.several or other.several or differs
        )

    def picked(self) -> Origin:
        """What a table leaves of it: which of several written values, or whether the one."""
        return OF_TABLE if self.several else self.chosen_from()

    def chosen_from(self) -> Origin:
        """What is left by a condition on a table, which says nothing of the written values."""
        return msgspec.structs.replace(self, chosen=True)


OF_TABLE = Origin(depends=True, partly=True)
OF_NOTHING = Origin()


def made_of(origins: Iterable[Origin]) -> Origin:
    """What is made of all of them; of none: of nothing."""
    return functools.reduce(Origin.__or__, origins, OF_NOTHING)


def in_turn(origins: Iterable[Origin]) -> Origin:
    """What is each of them in some rows; of none there are no rows."""
    found = list(origins)
    return functools.reduce(Origin.beside, found) if found else OF_TABLE


class Column(msgspec.Struct, frozen=True):
    """A column of a result: its name in lower case, ``""`` without; None: any number of them."""

    name: str | None
    origin: Origin


class Rows(msgspec.Struct, frozen=True):
    """The result of a query: its columns, and whether a table decides how many rows there are."""

    columns: tuple[Column, ...]
    counted: bool

    @property
    def fixed(self) -> bool:
        """Whether each column is written out."""
        return not any(column.origin.depends for column in self.columns)

    def whole(self) -> Origin:
        """What any column may be."""
        return in_turn(column.origin for column in self.columns)

    def chosen(self, *, picks: bool = True) -> Rows:
        """The rows of which a table leaves some.

        Args:
            picks: it is said which, by what the rows hold.
        """
        taken = Origin.picked if picks else Origin.chosen_from
        return Rows(tuple(Column(c.name, taken(c.origin)) for c in self.columns), self.counted)

    def above(self, below: Rows) -> Rows:
        """These rows and those of the other part of a UNION.

        A part of written values only is an answer written out, whatever the other part holds.
        """
        written = self.fixed or below.fixed
        columns: list[Column] = []
        for one, other in self.beside(below):
            origin = one.origin.beside(other.origin)
            if origin.depends:
                texts = one.origin.literals if other.origin.depends else other.origin.literals
                origin = msgspec.structs.replace(
                    origin, depends=not written, literals=texts, several=True
                )
            columns.append(Column(one.name, origin))
        return Rows(tuple(columns), self.counted or below.counted)

    def common(self, other: Rows) -> Rows:
        """The rows of an INTERSECT with others."""
        pairs = self.beside(other)
        columns = tuple(Column(one.name, one.origin | two.origin) for one, two in pairs)
        return Rows(columns, self.counted or other.counted)

    def beside(self, other: Rows) -> Iterable[tuple[Column, Column]]:
        """The columns of both, side by side; of a ``*`` it is not known which are which."""
        if len(self.columns) == len(other.columns):
            return zip(self.columns, other.columns, strict=True)
        return [(Column(None, self.whole()), Column(None, other.whole()))]


class Source(msgspec.Struct, frozen=True):
    """What a FROM names: a table, a result, or a function's rows.

    Attributes:
        name: by which columns refer to it, in lower case.
        columns: those that are known, by name.
        others: what any other column is, if it may have others.
        counted: a table decides how many rows there are.
        listed: what ``*`` stands for.
    """

    name: str
    columns: Mapping[str, Origin]
    others: Origin | None
    counted: bool
    listed: tuple[Column, ...]

    def find(self, name: str) -> Origin | None:
        """The column of that name, None if it has none."""
        return self.columns.get(name, self.others)


class Scope:
    """The sources that the expressions of one query see, and those of the query around it.

    Args:
        outer: what the query around it sees.
        ctes: the results that WITH names.
    """

    def __init__(self, outer: Scope | None, ctes: Mapping[str, Rows]) -> None:
        self.outer = outer
        self.ctes = ctes
        self.sources: list[Source] = []
        self.natural = False
        self.shared: dict[str, Origin] = {}
        """The columns of USING, by name."""
        self.compared: list[Origin] = []
        """What USING compares."""

    @property
    def counted(self) -> bool:
        """Whether a table decides how many rows there are."""
        return any(source.counted for source in self.sources)

    def share(self, name: str, *, joined: int, side: str) -> None:
        """Make one column of those of that name, as USING does.

        Args:
            name: the column's, in lower case.
            joined: the number of the sources left of the JOIN.
            side: ``"LEFT"``: the value is the left one's; ``"RIGHT"``: the right one's; else it is
                both.
        """
        before, after = _found(self.sources[:joined], name), _found(self.sources[joined:], name)
        if name in self.shared:
            before = self.shared[name]
        self.compared.append(before | after)
        sides = {"LEFT": (before,), "RIGHT": (after,)}.get(side, (before, after))
        self.shared[name] = made_of(sides)

    def column(self, name: str, table: str) -> Origin:
        """What a column is; what is unknown is taken to be a table's."""
        if table:
            found = [source for source in self.sources if source.name == table]
            if found:
                return found[0].find(name) or OF_TABLE
        elif name in self.shared:
            return self.shared[name]
        else:
            known = [source.columns[name] for source in self.sources if name in source.columns]
            others = [s.others for s in self.sources if s.others is not None]
            if known and not self.natural:
                return known[0]
            if known or others:
                return made_of((*known, *others))
        return self.outer.column(name, table) if self.outer is not None else OF_TABLE


def _found(sources: Iterable[Source], name: str) -> Origin:
    """The column of that name among sources; one that is not known may be any that has others."""
    listed = list(sources)
    known = [source.columns[name] for source in listed if name in source.columns]
    return known[0] if known else made_of(s.others for s in listed if s.others is not None)
