"""A feature map: a chain of fitted steps plus all else that the output depends on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import ValidationError

from kafeat._version import __version__
from kafeat.chain.chain import Chain
from kafeat.chain.tiles import tile_rows
from kafeat.config import Config, load_config
from kafeat.contract.describe import spell
from kafeat.contract.step import Transform
from kafeat.errors import ArtifactError, ConfigError, DataError, UsageError, first_line
from kafeat.io.columns.columns import Columns
from kafeat.io.columns.selection import match
from kafeat.io.readers.base import Chunk, Reader
from kafeat.io.storage.atomic import write_bytes
from kafeat.io.storage.files import opened
from kafeat.model import artifact
from kafeat.model.in_notebooks import InNotebooks
from kafeat.model.provenance import Provenance, printable
from kafeat.model.serialize import chain_content, read_chain
from kafeat.runtime.column_ranges import ColumnRanges
from kafeat.runtime.environment import count_jobs
from kafeat.runtime.threads import NOTHING_ELSE, FeatureTarget, InMemory, RowPolicy, Transformed, run
from kafeat.types import DType, Floats

FORMAT = 2
"""Of the files that are written. In format 1 all values are cast to the map's dtype before the first step."""
_LONGEST = 600


@dataclass(frozen=True, repr=False)
class FeatureMap(InNotebooks):
    """z: rows of numbers → rows of features, with z(x)·z(y) ≈ k(x, y).

    Made by `kafeat.fit` or `kafeat.load`. `columns` are the input columns, `config` the recipe that it was fitted
    by, `provenance` from what: file names, rows, content and config hashes.
    """

    chain: Chain
    columns: Columns
    dtype: DType
    chunk_rows: int
    config: Config
    provenance: Provenance
    version: str = __version__
    """Of the kafeat that fitted it."""
    seen: ColumnRanges | None = None
    """The range of every input feature that the fit has read; None: the map is older than that."""
    format: int = FORMAT
    """Of the file that it came from, in which it is saved again."""

    def __repr__(self) -> str:
        kinds = " -> ".join(fitted.step.kind for fitted in self.chain.steps)
        return f"FeatureMap({kinds}: {self.n_features_in} inputs, {self.n_components} features, {self.dtype})"

    @cached_property
    def transformer(self) -> Transform:
        """The chain, bound to the map's dtype: derived arrays once per process."""
        return self.chain.bind(np.dtype(self.dtype))

    @property
    def input_dtype(self) -> np.dtype[Any]:
        """The dtype that input values are read in: float64 where the first step computes in it."""
        return self.transformer.reads(np.dtype(self.dtype))

    @property
    def n_features_in(self) -> int:
        """Width of the input."""
        return self.chain.n_features_in

    @property
    def n_components(self) -> int:
        """Width of the output."""
        return self.transformer.n_features_out

    @cached_property
    def digest(self) -> str | None:
        """SHA-256, in hex, of the artifact's bytes: what `sha256sum` prints for the saved file.

        None for a map that no file can hold, as its kernel is a Python function.
        """
        if any(fitted.step.unsaved for fitted in self.chain.steps):
            return None
        return hashlib.sha256(self.dumps()).hexdigest()

    def transform(self, X: Any, jobs: int | None = None, *, out: Floats | None = None) -> Floats:
        """z(X): features (n_rows, n_components) in the map's dtype.

        `X` is a 2-D array (n_rows, n_features_in), a sparse matrix of SciPy's, or a table with the map's columns
        (pyarrow, pandas, polars), which are matched by name. `jobs` threads share the work, all cores by default; the
        result does not depend on their number. `out` takes the features, an array of that shape: memory that is used
        again is filled faster than new memory. If it has another dtype they are rounded to it, and must fit. Raises
        `kafeat.errors.DataError` for values that are not finite or that a step refuses.
        """
        source, columns = self._source(X)
        if source.rows is None:
            raise TypeError("a source in memory knows its rows")
        shape = (source.rows, self.n_components)
        if out is None:
            out = np.empty(shape, dtype=self.dtype)
        elif out.shape != shape or out.dtype.kind != "f" or not out.flags.writeable:
            raise UsageError(
                f"out: expected a writeable array of floats of shape {shape}, "
                f"got shape {out.shape} and dtype {out.dtype}"
            )
        chunks = source.chunks(columns, (), self._height(source.rows, count_jobs(jobs)))
        for _ in self.run(chunks, InMemory(out), jobs):
            pass
        return out

    def _height(self, rows: int, jobs: int) -> int:
        """The height of chunks of which every worker gets some four.

        Tiles then begin where they would in chunks of full height, so that the bytes stay the same.
        """
        height = tile_rows(self.transformer)
        if self.chunk_rows % height:
            return self.chunk_rows
        tiles = -(-rows // (4 * jobs * height))
        return min(self.chunk_rows, max(1, tiles) * height)

    def run(
        self,
        chunks: Iterator[Chunk],
        target: FeatureTarget,
        jobs: int | None,
        watch: RowPolicy = NOTHING_ELSE,
    ) -> Iterator[Transformed]:
        """Transform chunks by `jobs` threads, read by a further one; they come in order, as they are done."""
        return run(self.transformer, np.dtype(self.dtype), chunks, target, count_jobs(jobs), watch)

    def exact_kernel(self, X: Any, Y: Any = None) -> Floats:
        """The kernel that the map approximates: k(X, Y), float64 (n, m); Y is X if not given.

        It is the kernel of the whole chain, computed in float64 from the values that the map reads.
        """
        x = self.matrix(X)
        return self.chain.exact(x, x if Y is None else self.matrix(Y), np.dtype(self.dtype))

    def matrix(self, X: Any) -> Floats:
        """The map's columns of `X` as an array (n_rows, n_features_in), in the dtype that the map reads."""
        source, columns = self._source(X)
        dtype = self.input_dtype
        parts = [chunk.matrix(dtype) for chunk in source.chunks(columns, (), self.chunk_rows)]
        return np.concatenate([np.empty((0, self.n_features_in), dtype=dtype), *parts])

    def _source(self, X: Any) -> tuple[Reader, Columns]:
        # Imported here: a transform of files does not need it at its start.
        from kafeat.io.readers.memory import reader_of

        source = reader_of(X)
        return source, match(source, self.columns, ())

    def dumps(self) -> bytes:
        """The artifact's bytes: the same fit gives the same."""
        return artifact.dumps(self._content())

    def save(self, path: str | os.PathLike[str], overwrite: bool = True, *, fsync: bool = True) -> None:
        """Write the artifact, complete or not at all, to a path or a URI. It is safe to `kafeat.load`.

        With `fsync` it is on the disk when this returns.
        """
        write_bytes(os.fspath(path), self.dumps(), clobber=overwrite, fsync=fsync)

    def _content(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "kafeat": self.version,
            "config": self.config.to_plain(),
            "columns": self.columns.to_plain(),
            "dtype": self.dtype,
            "chunk_rows": self.chunk_rows,
            "steps": chain_content(self.chain),
            **({} if self.format == 1 else {"cast_after": self.chain.cast_after}),
            **({} if self.chain.outputs is None else {"outputs": self.chain.outputs}),
            **({} if self.seen is None else {"seen": self.seen.to_plain()}),
            "provenance": self.provenance.to_plain(),
        }


def load(path: str | os.PathLike[str]) -> FeatureMap:
    """The feature map of an artifact, by its path or URI.

    A damaged, foreign or hostile file raises `ArtifactError`; nothing of it runs.
    """
    place = os.fspath(path)
    return loads(artifact_bytes(place), place)


def artifact_bytes(place: str) -> bytes:
    """All bytes of the model file at a place."""
    with opened(place) as file:
        return file.readall()


def loads(data: bytes, place: str = "<bytes>") -> FeatureMap:
    """The feature map of an artifact's bytes, on the same terms as `load`; `place` names them in messages."""
    return from_content(artifact.loads(data, place), place)


def from_content(content: Mapping[str, Any], place: str) -> FeatureMap:
    """The feature map of what an artifact holds, all of it checked."""
    version = content.get("format")
    if type(version) is not int or not 1 <= version <= FORMAT:
        raise ArtifactError(
            f"{place}: format: expected a number from 1 to {FORMAT}, got {spell(version)}: this is kafeat "
            f"{__version__}, the model was written by {spell(content.get('kafeat'))}"
        )
    expected = {"format", "kafeat", "config", "columns", "dtype", "chunk_rows", "steps", "provenance"}
    expected |= {"cast_after"} if version > 1 else set()
    if set(content) - {"outputs", "seen"} != expected:
        raise ArtifactError(f"{place}: expected the entries {sorted(expected)}, got {sorted(content)!s:.200}")
    try:
        fm = _checked(content)
        _ = fm.transformer  # made here: a state may have numbers that the dtype cannot hold
        return fm
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ArtifactError(f"{place}: {_told(f'provenance.{where}: ' + first['msg'])}") from None
    except (ValueError, DataError, ConfigError) as error:
        raise ArtifactError(f"{place}: {_told(first_line(error))}") from None


def _told(problem: str) -> str:
    """What is wrong, of which a part may be a stranger's text: no longer than needed, and nothing but text."""
    return printable(problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}…")


def _checked(content: Mapping[str, Any]) -> FeatureMap:
    dtype, chunk_rows = content["dtype"], content["chunk_rows"]
    if isinstance(dtype, np.ndarray) or dtype not in ("float32", "float64"):
        raise ValueError(f"dtype: expected float32 or float64, got {spell(dtype)}")
    if type(chunk_rows) is not int or not 1 <= chunk_rows <= 1_000_000:
        raise ValueError(f"chunk_rows: expected a whole number from 1 to 1,000,000, got {spell(chunk_rows)}")
    columns = Columns.from_plain(content["columns"])
    chain = read_chain(
        content["steps"], columns.n_features, content.get("outputs"), content.get("cast_after", 0)
    )
    version = content["kafeat"]
    if type(version) is not str or not version.isprintable():
        raise ValueError(f"kafeat: expected a version, got {spell(version)}")
    config = load_config(content["config"] if isinstance(content["config"], dict) else {})
    provenance = Provenance.model_validate(content["provenance"])
    seen = ColumnRanges.from_plain(content["seen"], columns.n_features) if "seen" in content else None
    return FeatureMap(chain, columns, dtype, chunk_rows, config, provenance, version, seen, content["format"])
