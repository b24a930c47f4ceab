"""Help in sections, without Rich: commands are listed under the panel that they were registered with."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

_WHOLE_SENTENCE = 200
"""Characters: more than any first sentence has, so that lines wrap and nothing is cut."""


class Sections(TyperGroup):
    """A group whose help has one list of commands per section, in the order of registration."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the lists; called by Typer while it formats help."""
        sections: dict[str, list[tuple[str, str]]] = {}
        width = max((len(name) for name in self.commands), default=0)
        for name, command in self.commands.items():
            section = str(getattr(command, "rich_help_panel", None) or "Commands")
            row = (name.ljust(width), command.get_short_help_str(_WHOLE_SENTENCE))
            sections.setdefault(section, []).append(row)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)
