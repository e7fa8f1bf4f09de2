"""Numbers with units: blanks, cases and slashes, and texts that only look like them."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.grading.qa import grade, overlap
from toolenvs.grading.qa_units import CURRENCY_SIGNS, spell_measure

UNITS = ("km", "m", "kg", "L", "s", "GB", "Mbit", "GHz", "kW", "mW", "MW", "V", "Pa", "eV", "USD")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 km", "5km"),
        ("5 KM", "5km"),
        ("12 V", "12v"),
        ("3 GB", "3 gb"),
        ("5 MW", "5 mw"),
        ("5 Kb", "5kb"),
        ("10 a.m.", "10am"),
        ("10:30 A.M.", "10:30 am"),
        ("4x4", "4 x 4"),
        ("4 X 4", "4×4"),
        ("5 m/s²", "5m/s2"),
        ("5 g/l", "5 g/L"),
        ("5 km²", "5 km2"),
        ("W/m²", "W/m2"),
        ("5 µm", "5 μm"),
        ("300 K", "300K"),
        ("5 €", "5€"),
        ("5 usd", "5USD"),
        ("5 in", "5in"),
        ("5 A", "5a"),
        ("$5M", "$5m"),
        ("5G", "5g"),
        ("iPhone 5S", "iPhone 5s"),
        ("Tu-22M", "tu-22m"),
        ("-5 km", "-5km"),
        ("5–10 km", "5-10km"),
        ("_1.95 m_", "1.95 m"),
        ("5 MM", "5 mm"),
        ("5 ml", "5 mL"),
        ("60 hz", "60 Hz"),
        ("1 KB", "1 kB"),
        ("five mw", "five MW"),
        ("five people", "Five People"),
        ("10 PM", "10 pm"),
    ],
)
def test_a_measure_is_one_in_any_spelling(one: str, other: str) -> None:
    """A blank does not matter, nor does case where no other unit is meant."""
    assert grade(one, other).correct
    assert grade(other, one).correct
    assert overlap(one, other).f1 == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 mW", "5 MW"),
        ("5mb", "5Mb"),
        ("5 Mb", "5 MB"),
        ("5 kb", "5 kB"),
        ("5 mg", "5 Mg"),
        ("5 meV", "5 MeV"),
        ("1 m", "1M"),
        ("5 m/s", "5 ms"),
        ("5 m/s", "5 m s"),
        ("5 g/L", "5 gL"),
        ("5 m/s", "5 m"),
        ("W/m2", "Wm2"),
        ("km/h", "kmh"),
        ("5 m/s²", "5 m/s"),
        ("5 km²", "5 km"),
        ("5 in Paris", "5in Paris"),
        ("4x4", "44"),
        ("10 am", "10 pm"),
        ("5 km", "-5 km"),
        ("1.5 m", "15 m"),
        ("5 km", "5 mm"),
        ("5 MBps", "5 Mbps"),
        ("5 mL", "5 ML"),
        ("3 mSv", "3 MSv"),
        ("5 mT", "5 MT"),
        ("5 mF", "5 MF"),
        ("5 mmol", "5 Mmol"),
        ("5 pA", "5 Pa"),
        ("5 Mm", "5 mm"),
        ("5 ms", "5 mS"),
        ("5 Nm", "5 nm"),
        ("5 mM", "5 MM"),
        ("five MW", "five mW"),
        ("twenty-five MW", "twenty-five mW"),
        ("two million Mb", "two million MB"),
        ("5 €", "5 $"),
    ],
)
def test_another_unit_is_another_answer(one: str, other: str) -> None:
    """And so is one whose slash or power is gone."""
    assert not grade(one, other).correct
    assert not grade(other, one).correct
    assert overlap(one, other).f1 < 1.0


@given(
    st.integers(-(10**6), 10**6),
    st.sampled_from(UNITS),
    st.sampled_from(UNITS),
    st.sampled_from(("", " ")),
)
def test_measures_are_equal_only_if_number_and_unit_are(
    number: int, one: str, other: str, blank: str
) -> None:
    """Whether or not a blank stands between them."""
    assert grade(f"{number} {one}", f"{number}{blank}{other}").correct == (one == other)
    assert not grade(f"{number} {one}", f"{number + 1}{blank}{one}").correct
    assert not grade(f"{number} {one}/{other}", f"{number} {one}{other}").correct


@pytest.mark.parametrize(
    "token", ["AC/DC", "N/A", "and/or", "$5M", "5", "km", "x/s", "5people", ""]
)
def test_what_is_no_measure(token: str) -> None:
    """Words with a slash, amounts of money, a number or a unit alone."""
    assert spell_measure(token) is None


def test_the_signs_of_currencies_are_those_of_unicode() -> None:
    """All that this Python's Unicode has."""
    signs = re.compile(f"[{CURRENCY_SIGNS}]")
    known = [chr(n) for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n)) == "Sc"]
    assert all(map(signs.fullmatch, known))
    found = signs.findall("".join(map(chr, range(sys.maxunicode + 1))))
    assert {unicodedata.category(sign) for sign in found} <= {"Sc", "Cn"}
