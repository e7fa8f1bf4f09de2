"""Write the list of attacks into ``docs/isolation.md``: ``python -m tests.attacks.table``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.attacks.attack import Attack
from tests.attacks.exhaustion import EXHAUSTION
from tests.attacks.forging import FORGING
from tests.attacks.kernel import KERNEL
from tests.attacks.outliving import OUTLIVING
from tests.attacks.reaching import REACHING

ATTACKS = (*EXHAUSTION, *OUTLIVING, *REACHING, *KERNEL, *FORGING)
DOCS = Path(__file__).parents[2] / "docs" / "isolation.md"
_BEGIN, _END = "<!-- attacks: begin -->\n", "<!-- attacks: end -->\n"
_CHAPTERS: tuple[tuple[str, Sequence[Attack]], ...] = (
    ("Using up", EXHAUSTION),
    ("Ending badly, living on", OUTLIVING),
    ("Reaching what is not its own", REACHING),
    ("The kernel", KERNEL),
    ("The channel", FORGING),
)


def table() -> str:
    """The list as Markdown: what each attack ends with, and what stops it."""
    lines = []
    for title, attacks in _CHAPTERS:
        lines += [f"### {title}", "", "| attack | ends as | not held by | what stops it |"]
        lines += ["|---|---|---|---|", *map(_row, attacks), ""]
    return "\n".join(lines)


def _row(attack: Attack) -> str:
    ends = " or ".join(f"`{status}`" for status in attack.ends)
    if attack.prints is not None and attack.ends == ("ok",):
        ends = "refused" if "refused" in attack.prints else "`ok`, shows nothing"
    names = {"local": "`local`", "runsc": "gVisor"}
    unheld = "; ".join(f"{names[kind]}: {why}" for kind, why in attack.not_held.items())
    return f"| {attack.name} | {ends} | {unheld or '-'} | {attack.stops} |"


def with_table(text: str) -> str:
    """The document with the list as it is now."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{table()}{_END}{after}"


if __name__ == "__main__":
    DOCS.write_text(with_table(DOCS.read_text(encoding="utf-8")), encoding="utf-8")
