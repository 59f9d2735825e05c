"""Open a writer by keywords, for tests."""

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from kafeat.io.formats import FORMATS
from kafeat.io.storage.atomic import atomic
from kafeat.io.storage.base import Location
from kafeat.io.storage.location import parse_location
from kafeat.io.writers import open as opening
from kafeat.io.writers.base import Layout, Writer

OPTIONS = {"overwrite": "clobber", "fsync": "fsync", "sweep": "sweep", "guard": "guard", "hashed": "hashed"}


def open_writer(place: str | Location, format: str, **values: Any) -> AbstractContextManager[Writer]:
    """Each keyword is a field of the layout, or says how the file is opened; `layout="list"` has a column of lists."""
    options = {own: values.pop(name) for name, own in OPTIONS.items() if name in values}
    prefix = values.pop("prefix", "features")
    layout = Layout(list_name=prefix if values.pop("layout", "columns") == "list" else None, **values)
    return opening.open_writer(parse_location(place), FORMATS[format], layout, partial(atomic, **options))
