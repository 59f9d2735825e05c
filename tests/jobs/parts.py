"""A run over parts with options as keywords."""

from kafeat.io.storage.location import location_of, parse_location
from kafeat.jobs.dataset import api
from kafeat.jobs.dataset.journal import DatasetResult
from kafeat.jobs.dataset.request import DatasetRequest


def transform_parts(model, source, target, *, announce=None, **options) -> DatasetResult:
    """Write the parts of `source` to the folder `target`."""
    places = parse_location(source), parse_location(target)
    return api.transform_parts(DatasetRequest(location_of(model) or model, *places, **options), announce)
