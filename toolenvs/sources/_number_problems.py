"""Problems on numbers: digits, residues, primes, recurrences, roots, probabilities, dates."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np

from toolenvs.sources._problem import Problem, fill, several, whole


def digit_sum(rng: np.random.Generator) -> Problem:
    """The sum of the decimal digits of ``a**b + c``."""
    a, b, c = whole(rng, 3, 97), whole(rng, 120, 700), whole(rng, 1, 10_000)
    return Problem(
        f"What is the sum of the decimal digits of {a}^{b} + {c}?",
        str(sum(int(digit) for digit in str(a**b + c))),
        fill(
            """
            n, total = $a ** $b + $c, 0
            while n:
                n, digit = divmod(n, 10)
                total += digit
            print(total)
            """,
            a=a,
            b=b,
            c=c,
        ),
    )


def modular_chain(rng: np.random.Generator) -> Problem:
    """A term of ``x -> x**e + c (mod m)``, found by the cycle that the chain runs into."""
    start, c, m = whole(rng, 2, 500), whole(rng, 1, 500), whole(rng, 600, 5_000)
    e, steps = whole(rng, 2, 5), whole(rng, 10_000, 60_000)
    seen, terms, x = {start % m: 0}, [start % m], start % m
    while (x := (x**e + c) % m) not in seen:
        seen[x] = len(terms)
        terms.append(x)
    first, period = seen[x], len(terms) - seen[x]
    answer = terms[steps] if steps < len(terms) else terms[first + (steps - first) % period]
    return Problem(
        f"Let x_0 = {start} and x_(k+1) = (x_k^{e} + {c}) mod {m}, with x_0 taken mod {m} too. "
        f"Find x_{steps}.",
        str(answer),
        fill(
            """
            x = $start % $m
            for _ in range($steps):
                x = (pow(x, $e, $m) + $c) % $m
            print(x)
            """,
            start=start,
            steps=steps,
            e=e,
            c=c,
            m=m,
        ),
    )


def prime_sum(rng: np.random.Generator) -> Problem:
    """The sum of the primes of a residue class whose digit sum is even, up to a limit."""
    limit, m = whole(rng, 2_000, 12_000), whole(rng, 3, 12)
    r = int(rng.choice([k for k in range(1, m) if np.gcd(k, m) == 1]))
    sieve = np.ones(limit + 1, dtype=bool)
    sieve[:2] = False
    for p in range(2, isqrt(limit) + 1):
        if sieve[p]:
            sieve[p * p :: p] = False
    chosen = [
        int(p) for p in np.flatnonzero(sieve) if p % m == r and sum(map(int, str(p))) % 2 == 0
    ]
    return Problem(
        f"Find the sum of all primes p <= {limit} that leave the remainder {r} when divided by "
        f"{m} and whose decimal digits have an even sum.",
        str(sum(chosen)),
        fill(
            """
            import sympy

            print(sum(p for p in sympy.primerange($limit + 1)
                      if p % $m == $r and sum(map(int, str(p))) % 2 == 0))
            """,
            limit=limit,
            m=m,
            r=r,
        ),
    )


def recurrence(rng: np.random.Generator) -> Problem:
    """A far term of a linear recurrence of order 3 modulo a number, by powers of its matrix."""
    a, start = several(rng, 3, 1, 20), several(rng, 3, 0, 50)
    n, m = whole(rng, 5_000, 100_000), whole(rng, 1_000, 1_000_000)
    matrix, power = [a, [1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    for bit in f"{n - 2:b}":
        power = _product(power, power, m)
        if bit == "1":
            power = _product(power, matrix, m)
    answer = sum(x * y for x, y in zip(power[0], reversed(start), strict=True)) % m
    return Problem(
        f"A sequence has a_0 = {start[0]}, a_1 = {start[1]}, a_2 = {start[2]} and, for n >= 3, "
        f"a_n = {a[0]} a_(n-1) + {a[1]} a_(n-2) + {a[2]} a_(n-3). "
        f"Find the remainder of a_{n} when divided by {m}.",
        str(answer),
        fill(
            """
            x, y, z = $start
            for _ in range($n - 2):
                x, y, z = y, z, ($a[0] * z + $a[1] * y + $a[2] * x) % $m
            print(z % $m)
            """,
            start=start,
            n=n,
            a=a,
            m=m,
        ),
    )


def _product(left: list[list[int]], right: list[list[int]], m: int) -> list[list[int]]:
    columns = list(zip(*right, strict=True))
    return [
        [sum(x * y for x, y in zip(row, column, strict=True)) % m for column in columns]
        for row in left
    ]


def root_powers(rng: np.random.Generator) -> Problem:
    """The sum of the k-th powers of a polynomial's complex roots, by Newton's identities."""
    degree, k = whole(rng, 3, 5), whole(rng, 8, 16)
    c = several(rng, degree, -5, 5)  # x^d + c[0] x^(d-1) + ... + c[d-1]
    sums: list[int] = []
    for i in range(1, k + 1):
        direct = -i * c[i - 1] if i <= degree else 0
        sums.append(direct - sum(c[j] * sums[i - 2 - j] for j in range(min(i - 1, degree))))
    return Problem(
        f"Let P(x) = {_polynomial([1, *c])}. Find the sum of the {k}-th powers of all "
        "complex roots of P, counted with multiplicity. It is a whole number.",
        str(sums[-1]),
        fill(
            """
            import sympy

            c = $c
            d = len(c)
            companion = sympy.zeros(d, d)
            for i in range(d):
                companion[i, d - 1] = -c[d - 1 - i]
                if i:
                    companion[i, i - 1] = 1
            print((companion ** $k).trace())
            """,
            c=c,
            k=k,
        ),
    )


def _polynomial(coefficients: list[int]) -> str:
    text = ""
    for power, factor in zip(range(len(coefficients) - 1, -1, -1), coefficients, strict=True):
        if factor:
            size = "" if abs(factor) == 1 and power else str(abs(factor))
            x = "" if power == 0 else "x" if power == 1 else f"x^{power}"
            text += (" - " if factor < 0 else " + ") + f"{size} {x}".strip()
    return text.removeprefix(" + ")


def dice_probability(rng: np.random.Generator) -> Problem:
    """The probability that unlike dice reach a total, as a fraction in lowest terms."""
    sides = sorted(several(rng, whole(rng, 3, 5), 3, 12))
    target = whole(rng, sum(sides) // 2, sum(sides) - len(sides))
    ways = [1]
    for faces in sides:
        rolled = [0] * (len(ways) + faces)
        for total, count in enumerate(ways):
            for face in range(1, faces + 1):
                rolled[total + face] += count
        ways = rolled
    chance = Fraction(sum(ways[target:]), sum(ways))
    return Problem(
        f"Fair dice with {', '.join(map(str, sides[:-1]))} and {sides[-1]} faces, each numbered "
        f"from 1, are rolled once. What is the probability that the total is at least {target}? "
        "Give a fraction in lowest terms.",
        f"{chance.numerator}/{chance.denominator}" if chance.denominator > 1 else str(chance),
        fill(
            """
            from fractions import Fraction
            from itertools import product

            rolls = [sum(roll) for roll in product(*(range(1, n + 1) for n in $sides))]
            print(Fraction(sum(total >= $target for total in rolls), len(rolls)))
            """,
            sides=sides,
            target=target,
        ),
    )


def calendar_days(rng: np.random.Generator) -> Problem:
    """How often a day of the month falls on a weekday, by Zeller's congruence."""
    names = ["Saturday", "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
    first = whole(rng, 1900, 2150)
    last, day, weekday = first + whole(rng, 20, 300), whole(rng, 1, 28), whole(rng, 0, 6)
    count = 0
    for year in range(first, last + 1):
        for month in range(1, 13):
            y, m = (year - 1, month + 12) if month < 3 else (year, month)
            zeller = day + 13 * (m + 1) // 5 + y + y // 4 - y // 100 + y // 400
            count += zeller % 7 == weekday
    return Problem(
        f"In the Gregorian calendar, how many times does day {day} of a month fall on a "
        f"{names[weekday]} from January {first} to December {last}, both included?",
        str(count),
        fill(
            """
            from datetime import date

            print(sum(date(y, m, $day).strftime("%A") == $weekday
                      for y in range($first, $last + 1) for m in range(1, 13)))
            """,
            day=day,
            weekday=names[weekday],
            first=first,
            last=last,
        ),
    )
