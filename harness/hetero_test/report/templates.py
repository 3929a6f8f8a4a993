"""Jinja, set up once for every builder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hetero_test.resources import folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Environment


def environment(*, html: bool, **filters: Callable[..., Any]) -> Environment:
    """Where templates of this package are found, and what they may call.

    Args:
        html: texts are escaped as they are put in; in Markdown every text goes through a filter
            of ``escape`` instead, since what has to be escaped depends on the place.
        filters: by name.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(folder("reports") / "templates"),
        undefined=StrictUndefined,
        autoescape=html,  # noqa: S701 - see above
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(filters)
    return made
