"""Open a writer by keywords, for tests."""

from contextlib import AbstractContextManager
from dataclasses import fields
from typing import Any

from kafeat.io.formats import FORMATS
from kafeat.io.storage.base import Location
from kafeat.io.storage.location import parse_location
from kafeat.io.writers import open as opening
from kafeat.io.writers.base import Layout, OutputOptions, Writer

OPTIONS = {field.name for field in fields(OutputOptions)} - {"dtype"}


def open_writer(place: str | Location, format: str, **values: Any) -> AbstractContextManager[Writer]:
    """Each keyword is a field of the layout or of the options."""
    options = {name: values.pop(name) for name in OPTIONS & set(values)}
    layout = Layout(**values, options=OutputOptions(**options))
    return opening.open_writer(parse_location(place), FORMATS[format], layout)
