"""Fills the document templates that lie beside this module."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_TEMPLATES = Path(__file__).resolve().parent / "templates"


def render(template: str, **values: Any) -> str:
    """The filled template: no run of blank lines longer than one, ended by one newline.

    Raises:
        jinja2.UndefinedError: the template names a value that was not given.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    text = environment.get_template(template).render(**values)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
