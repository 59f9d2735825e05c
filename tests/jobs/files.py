"""`transform_file` and `verify_file` with names of files, as the commands have them."""

from typing import Any

from kafeat.io.storage.location import location_of, parse_location
from kafeat.jobs.transform import transform
from kafeat.jobs.transform.result import TransformResult
from kafeat.jobs.verify import verify
from kafeat.jobs.verify.verify import VerifyResult
from kafeat.model.load import load_from


def transform_file(model, source, target, **options: Any) -> TransformResult:
    """Write the features of `source` to `target`. The model is a map or its file."""
    place = location_of(model)
    fm = model if place is None else load_from(place)
    return transform.transform_file(fm, parse_location(source), parse_location(target), **options)


def verify_file(model, source, target, *, stats=None, **options: Any) -> VerifyResult:
    """Compare `target` with the features of `source`."""
    places = map(parse_location, (model, source, target))
    return verify.verify_file(*places, stats=location_of(stats), **options)
