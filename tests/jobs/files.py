"""Transforms, runs over parts and checks with names of files and flat keywords, as the commands have them."""

import json
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from kafeat.io.data_set import Part
from kafeat.io.options import InputOptions, OutputOptions
from kafeat.io.storage.location import location_of, parse_location
from kafeat.jobs.dataset import api
from kafeat.jobs.dataset.journal import DatasetResult
from kafeat.jobs.dataset.request import DatasetRequest
from kafeat.jobs.transform import transform
from kafeat.jobs.transform.options import RowOptions
from kafeat.jobs.transform.result import TransformResult
from kafeat.jobs.verify import verify
from kafeat.jobs.verify.verify import VerifyResult
from kafeat.model.load import load_from
from tests.zygote import apart

GROUPS = {"reading": InputOptions, "writing": OutputOptions, "rules": RowOptions}
OF_FOUR = {"kind": "fourier", "n_components": 4, "frequencies": "iid", "weights": "uniform"}
CONFIG = {"chunk_rows": 256, "steps": [OF_FOUR]}


def contents(folder: str | Path, pattern: str = "**/*") -> dict[str, bytes]:
    """The files below a folder by their names."""
    found = (path for path in Path(folder).glob(pattern) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def manifest(folder: str | Path = "out") -> dict[str, Any]:
    """The manifest of a run."""
    return dict(json.loads(Path(folder, "_kafeat.json").read_text()))


def gathered(options: dict[str, Any]) -> dict[str, Any]:
    """The options in their groups; a group may also be given as it is."""
    for name, group in GROUPS.items():
        given = {one.name: options.pop(one.name) for one in fields(group) if one.name in options}
        if given.get("rejects") is not None:
            given["rejects"] = parse_location(given["rejects"])
        options |= {name: group(**given)} if given else {}
    return options


def transform_file(model, source, target, **options: Any) -> TransformResult:
    """Write the features of `source` to `target`. The model is a map or its file, and an array becomes in.npy."""
    if isinstance(source, np.ndarray):
        np.save(Path(target).parent / "in.npy", source)
        source = Path(target).parent / "in.npy"
    place = location_of(model)
    fm = model if place is None else load_from(place)
    given = gathered(options)
    own = {name: given.pop(name) for name in ("reading", "writing", "rules", "jobs") if name in given}
    job = transform.TransformJob(fm, **own)
    source = source if isinstance(source, Part) else parse_location(source)
    return transform.transform_file(job, source, parse_location(target), **given)


def transform_parts(model, source, target, *, announce=None, overwrite=False, **options) -> DatasetResult:
    """Write the parts of `source` to the folder `target`."""
    places = location_of(model) or model, parse_location(source), parse_location(target)
    request = DatasetRequest(*places, overwrite=overwrite, **gathered(options))
    return api.run(request, begin=lambda _unit: nullcontext(announce))


def verify_file(model, source, target, *, stats=None, **options: Any) -> VerifyResult:
    """Compare `target` with the features of `source`."""
    places = map(parse_location, (model, source, target))
    return verify.verify_file(*places, stats=location_of(stats), **options)


IN_SMALL_FILES = """
import resource, signal, sys
from kafeat.errors import SystemRefusedError
import kafeat
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
try: kafeat.transform(*sys.argv[3:5], model=sys.argv[2])
except SystemRefusedError as error: print(error)
"""


def transform_with_files_of(most: int, *places: Any) -> Any:
    """Transform by a model, an input and an output in a process whose files have a limit, as on a full disk."""
    return apart(str(most), *places, code=IN_SMALL_FILES, text=True)
