"""Questions about the invented world, of one to three hops, and the passages that each needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from toolenvs.sources._invented import Dice, World, slug


class Asked(msgspec.Struct, frozen=True):
    """A question, its answer, and the ids of the passages that it needs, in order of use."""

    text: str
    answer: str
    supporting: tuple[str, ...]
    hops: int


def _asked(text: str, answer: object, *names: str, hops: int = 0) -> Asked:
    supporting = tuple(dict.fromkeys(map(slug, names)))
    return Asked(text, str(answer), supporting, hops or len(supporting))


def birthplace(world: World, dice: Dice) -> Asked:
    """One hop: a person's place of birth."""
    person = dice.pick(world.people)
    return _asked(f"In which town was {person.name} born?", person.birthplace.name, person.name)


def founding_year(world: World, dice: Dice) -> Asked:
    """One hop: an organisation's year."""
    each = dice.pick(world.organisations)
    return _asked(f"In which year was {each.name} founded?", each.founded, each.name)


def mayor(world: World, dice: Dice) -> Asked:
    """One hop: a town's mayor."""
    town = dice.pick(world.towns)
    return _asked(f"Who is the mayor of {town.name}?", town.mayor, town.name)


def birth_region(world: World, dice: Dice) -> Asked:
    """Two hops: person, town."""
    person = dice.pick(world.people)
    town = person.birthplace
    text = f"In which region is the town where {person.name} was born?"
    return _asked(text, town.region.name, person.name, town.name)


def employer_founder(world: World, dice: Dice) -> Asked:
    """Two hops: person, organisation."""
    person = dice.pick(world.people)
    house = world.employer(person)
    text = f"Who founded the organisation that {person.name} works for?"
    return _asked(text, house.founder.name, person.name, house.name)


def author_year(world: World, dice: Dice) -> Asked:
    """Two hops: work, person."""
    work = dice.pick(world.works)
    text = f"In which year was the author of the {work.form} {work.name} born?"
    return _asked(text, work.author.born, work.name, work.author.name)


def seat_population(world: World, dice: Dice) -> Asked:
    """Two hops: organisation, town."""
    house = dice.pick(world.organisations)
    text = f"How many inhabitants has the town in which {house.name} has its headquarters?"
    return _asked(text, f"{house.seat.population:,}", house.name, house.seat.name)


def author_region(world: World, dice: Dice) -> Asked:
    """Three hops: work, person, town."""
    work = dice.pick(world.works)
    town = work.author.birthplace
    text = f"In which region was the author of {work.name} born?"
    return _asked(text, town.region.name, work.name, work.author.name, town.name)


def employer_mayor(world: World, dice: Dice) -> Asked:
    """Three hops: person, organisation, town."""
    person = dice.pick(world.people)
    house = world.employer(person)
    text = f"Who is the mayor of the town where the employer of {person.name} has its headquarters?"
    return _asked(text, house.seat.mayor, person.name, house.name, house.seat.name)


def founder_river(world: World, dice: Dice) -> Asked:
    """Three hops: organisation, person, town."""
    house = dice.pick(world.organisations)
    town = house.founder.birthplace
    text = f"On which river is the town where the founder of {house.name} was born?"
    return _asked(text, town.river, house.name, house.founder.name, town.name)


def born_earlier(world: World, dice: Dice) -> Asked:
    """A comparison of two people."""
    one, other = dice.pick(world.people), dice.pick(world.people)
    while one.born == other.born:
        other = dice.pick(world.people)
    answer = min(one, other, key=lambda each: each.born).name
    text = f"Who was born earlier, {one.name} or {other.name}?"
    return _asked(text, answer, one.name, other.name)


def founded_later(world: World, dice: Dice) -> Asked:
    """A comparison of two organisations."""
    one, other = dice.pick(world.organisations), dice.pick(world.organisations)
    while one.founded == other.founded:
        other = dice.pick(world.organisations)
    answer = max(one, other, key=lambda each: each.founded).name
    text = f"Which was founded later, {one.name} or {other.name}?"
    return _asked(text, answer, one.name, other.name)


def same_birthplace(world: World, dice: Dice) -> Asked:
    """Yes or no: two people."""
    wanted, one = dice.chance(0.5), dice.pick(world.people)
    others = [p for p in world.people if p != one and (p.birthplace == one.birthplace) == wanted]
    other = dice.pick(others) if others else next(p for p in world.people if p != one)
    answer = "yes" if one.birthplace == other.birthplace else "no"
    text = f"Were {one.name} and {other.name} born in the same town?"
    return _asked(text, answer, one.name, other.name)


def same_region(world: World, dice: Dice) -> Asked:
    """Yes or no: two organisations and their towns."""
    wanted, one = dice.chance(0.5), dice.pick(world.organisations)
    others = [
        each
        for each in world.organisations
        if each.seat != one.seat and (each.seat.region == one.seat.region) == wanted
    ]
    other = dice.pick(others or [each for each in world.organisations if each.seat != one.seat])
    answer = "yes" if one.seat.region == other.seat.region else "no"
    text = f"Do {one.name} and {other.name} have their headquarters in the same region?"
    return _asked(text, answer, one.name, other.name, one.seat.name, other.seat.name, hops=2)


QUESTIONS: Mapping[str, Callable[[World, Dice], Asked]] = {
    ask.__name__: ask
    for ask in (
        birthplace,
        birth_region,
        author_region,
        born_earlier,
        same_birthplace,
        founding_year,
        employer_founder,
        employer_mayor,
        founded_later,
        same_region,
        mayor,
        author_year,
        founder_river,
        seat_population,
    )
}
"""The kinds of questions, by name."""
