"""An invented world: regions, towns, people, organisations and works, and a passage on each.

Nothing of it is known from elsewhere, so questions about it can only be answered by searching.
Names are close to each other on purpose (Marla Venn, Marlo Venn, Marla Fenn). A fact stands in one
passage only, that of the thing which it is about, so the passages that an answer needs are known.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from toolenvs.types import Passage

T = TypeVar("T")

_GIVEN = (
    *("Marla", "Marlo", "Marlen", "Tessa", "Tesso", "Tessen", "Orin", "Orina", "Oren", "Ilva"),
    *("Ilvo", "Ilven", "Brask", "Braska", "Brasken", "Daven", "Davena", "Davo", "Kelma", "Kelmo"),
)
_SURNAMES = (
    *("Venn", "Venner", "Fenn", "Fenner", "Halvik", "Halvig", "Halver", "Torsund", "Torsind"),
    *("Quill", "Quiller", "Quellen", "Ashdal", "Ashdel", "Asholm", "Morrow", "Morran", "Merrow"),
)
_STEMS = ("Hald", "Held", "Orm", "Arm", "Brev", "Brav", "Tisk", "Tusk", "Lind", "Lund")
_ENDINGS = ("en", "or", "mere", "by", "wick", "stad")
_RIVERS = ("Sorrel", "Sorrow", "Tarn", "Tern", "Vessel", "Vassel", "Ebrin", "Obrin")
_REGIONS = ("North Caldra", "South Caldra", "Veylmark", "Veilmoor", "Ostrand", "Astrand")
_TRADES = ("Optical Works", "Shipping Line", "Glassworks", "Press", "Observatory", "Pottery")
_QUALITIES = ("Silent", "Silver", "Hollow", "Winter", "Amber", "Salt")
_THINGS = ("Harbour", "Orchard", "Lantern", "Meridian", "Causeway", "Ledger")
_OCCUPATIONS = ("surveyor", "composer", "botanist", "novelist", "engineer", "cartographer")
_FORMS = ("novel", "opera", "play", "film")
_GOODS = ("slate", "linen", "smoked eel", "clockwork", "barley", "rope")


class Region(msgspec.Struct, frozen=True):
    """A region of the world."""

    name: str
    area: int


class Town(msgspec.Struct, frozen=True):
    """A town; ``mayor`` is the name of a person."""

    name: str
    region: Region
    river: str
    population: int
    mayor: str
    known_for: str


class Person(msgspec.Struct, frozen=True):
    """A person."""

    name: str
    occupation: str
    born: int
    birthplace: Town
    employer: str


class Organisation(msgspec.Struct, frozen=True):
    """An organisation; ``founder`` is a person."""

    name: str
    founded: int
    founder: Person
    seat: Town


class Work(msgspec.Struct, frozen=True):
    """A novel, an opera, a play or a film."""

    name: str
    form: str
    year: int
    author: Person


class Dice:
    """Draws that are equal in every version of Python: only ``random()`` is promised to be.

    Args:
        seed: any text.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no secret depends on it

    def number(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.number(0, len(items) - 1)]

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self._random.random() < share

    def names(self, n: int, make: Callable[[], str]) -> list[str]:
        """The first ``n`` different names that ``make`` makes."""
        found: dict[str, None] = {}
        while len(found) < n:
            found[make()] = None
        return list(found)


class World:
    """Everything there is, by a seed.

    Args:
        seed: equal seeds give equal worlds.
        people: number of people, 50 to 300; of the rest there is as much as they need.
    """

    def __init__(self, seed: int, *, people: int = 200) -> None:
        dice = Dice(f"world {seed} {people}")
        persons = dice.names(people, lambda: f"{dice.pick(_GIVEN)} {dice.pick(_SURNAMES)}")
        towns = dice.names(40, lambda: dice.pick(_STEMS) + dice.pick(_ENDINGS))
        houses = dice.names(people // 3, lambda: f"{dice.pick(_SURNAMES)} {dice.pick(_TRADES)}")
        titles = dice.names(36, lambda: f"The {dice.pick(_QUALITIES)} {dice.pick(_THINGS)}")
        self.regions = [Region(name, dice.number(41, 980) * 10) for name in _REGIONS]
        self.towns = [self._town(dice, name, persons) for name in towns]
        self.people = [self._person(dice, name, houses) for name in persons]
        self.organisations = [self._organisation(dice, name) for name in houses]
        self.works = [
            Work(name, dice.pick(_FORMS), dice.number(1905, 1998), dice.pick(self.people))
            for name in titles
        ]
        self._organisation_of = {each.name: each for each in self.organisations}

    def employer(self, person: Person) -> Organisation:
        """The organisation that a person works for."""
        return self._organisation_of[person.employer]

    def passages(self) -> list[Passage]:
        """A passage on each thing."""
        things: list[Region | Town | Person | Organisation | Work] = [
            *self.regions,
            *self.towns,
            *self.people,
            *self.organisations,
            *self.works,
        ]
        return [Passage(slug(thing.name), thing.name, told(thing)) for thing in things]

    def _town(self, dice: Dice, name: str, persons: Sequence[str]) -> Town:
        return Town(
            name,
            dice.pick(self.regions),
            dice.pick(_RIVERS),
            dice.number(1100, 99_000),
            dice.pick(persons),
            dice.pick(_GOODS),
        )

    def _person(self, dice: Dice, name: str, houses: Sequence[str]) -> Person:
        return Person(
            name,
            dice.pick(_OCCUPATIONS),
            dice.number(1851, 1979),
            dice.pick(self.towns),
            dice.pick(houses),
        )

    def _organisation(self, dice: Dice, name: str) -> Organisation:
        return Organisation(
            name, dice.number(1790, 1995), dice.pick(self.people), dice.pick(self.towns)
        )


def slug(name: str) -> str:
    """The id of the passage on something."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def told(thing: Region | Town | Person | Organisation | Work) -> str:
    """The text of the passage on something."""
    match thing:
        case Region():
            return (
                f"{thing.name} is a region of the Caldran coast. It covers {thing.area:,} square "
                "kilometres, most of it moorland and shallow fjords."
            )
        case Town():
            return (
                f"{thing.name} is a town in {thing.region.name}. It lies on the river "
                f"{thing.river} and has {thing.population:,} inhabitants. The mayor of "
                f"{thing.name} is {thing.mayor}. The town is known for its {thing.known_for}."
            )
        case Person():
            return (
                f"The {thing.occupation} {thing.name} was born in {thing.birthplace.name} in "
                f"{thing.born} and has worked for {thing.employer} since leaving school. Letters "
                f"to and from {thing.name} fill eleven boxes."
            )
        case Organisation():
            return (
                f"{thing.name} is an organisation with its headquarters in {thing.seat.name}. It "
                f"was founded in {thing.founded} by {thing.founder.name}, and its archive is open "
                "to visitors in summer."
            )
        case Work():
            return (
                f"{thing.name} is a {thing.form} by {thing.author.name}, first shown to the public "
                f"in {thing.year}. Critics called it long, but seldom dull."
            ).replace("a opera", "an opera")
