"""The tags of Search-R1: ``<search>query</search>``, ``<information>``, ``<answer>``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolenvs.formats import _message, _thought
from toolenvs.formats._tagged import ANSWER
from toolenvs.formats._thought import ThinkRule
from toolenvs.formats.tags import Tags
from toolenvs.types import ToolCall, ToolResult, ToolSpec

_INFORMATION = "information"
_STOPS = ("</search>", f"</{ANSWER}>")


class SearchR1(Tags):
    """What Search-R1 trains, and what builds on it (SkyRL's search, GEM ...).

    It is ``tags`` with results in ``<information>`` between blank lines, the stop strings
    ``</search>`` and ``</answer>``, and the words of Search-R1's prompt. A message that could not
    be read is answered without tags. Search-R1 runs the first tag of a message and forgets the
    rest; here the rules of all formats apply.

    Args:
        tags: see ``Tags``.
        think: ``"optional"``, ``"required"`` as Search-R1's prompt has it, or ``"opened"``.
        stop: see ``Tags``.

    Raises:
        UsageError: An option has no such value.

    Source: Jin et al. 2025, arXiv:2503.09516, section 3 and table 1.
    """

    name = "search_r1"

    def __init__(
        self,
        *,
        tags: Mapping[str, Sequence[str]] | None = None,
        think: ThinkRule = "optional",
        stop: str | Sequence[str] | None = None,
    ) -> None:
        stops = _STOPS if stop is None and tags is None else stop
        super().__init__(tags=tags, result_tag=_INFORMATION, think=think, stop=stops)

    def describe(self, specs: Sequence[ToolSpec]) -> str:
        """Say for each tool how its tag is written and what it does, and how to answer."""
        about = {spec.name: spec.description for spec in specs}
        lines = []
        for tag, slot in self._slots_for(specs).items():
            if slot.tool == _message.SUBMIT:
                lines.append(
                    "If you find no further external knowledge needed, you can directly provide "
                    f"the answer inside <{tag}> and </{tag}>, without detailed illustrations."
                )
                continue
            lines.append(
                f"You can call {slot.tool} by <{tag}> {slot.argument} </{tag}> and it will return "
                f"its results between <{_INFORMATION}> and </{_INFORMATION}>. "
                f"{about.get(slot.tool, '')}"
            )
        return "\n".join(map(str.strip, lines)) + _thought.instruction(self._think)

    def render(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> str:
        """Put each result into ``<information>``, in order; what was not called, into none."""
        if not calls:
            return "".join(f"\n{text}\n" for text in self._shown(results))
        return "".join(
            f"\n\n<{_INFORMATION}>{text}</{_INFORMATION}>\n\n" for text in self._shown(results)
        )
