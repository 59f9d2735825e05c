"""Save a map, and what follows from the bytes of its file: digest, pickle and equality."""

from __future__ import annotations

import hashlib
import os
from dataclasses import fields
from functools import cached_property
from typing import Any

from kafeat.chain.chain import Chain
from kafeat.io.storage.location import write_file
from kafeat.model import artifact, serialize


class SavedMap:
    """Base class of `FeatureMap` with the methods to save it. The subclass is a dataclass and has the fields."""

    chain: Chain

    def dumps(self) -> bytes:
        """Return the bytes of the model file; the same fit gives the same bytes.

        Returns
        -------
        bytes
            The file that `save` writes.

        Raises
        ------
        kafeat.errors.UsageError
            The map cannot be saved, because its kernel is a Python function.

        Examples
        --------
        >>> import kafeat
        >>> config = {"steps": [{"kind": "standardize"}]}
        >>> kafeat.fit(config, [[1.0], [2.0]]).dumps() == kafeat.fit(config, [[1.0], [2.0]]).dumps()
        True
        """
        return artifact.dumps(serialize.content_of(vars(self)))

    def save(self, path: str | os.PathLike[str], overwrite: bool = True, *, fsync: bool = True) -> None:
        """Write the model file, completely or not at all. Loading it runs no code.

        Parameters
        ----------
        path : str or path
            Path or URI of the file.
        overwrite : bool, default True
            True replaces an existing file, False raises an error.
        fsync : bool, default True
            True returns only when the file is on the disk.

        Raises
        ------
        kafeat.errors.ArtifactError
            The map cannot be read back from its bytes. No file is written or replaced.
        kafeat.errors.UsageError
            The file exists and `overwrite` is false, or the map cannot be saved.
        kafeat.errors.SystemRefusedError
            The file cannot be written.

        Examples
        --------
        >>> import kafeat, os, tempfile
        >>> fm = kafeat.fit({"steps": [{"kind": "standardize"}]}, [[1.0], [2.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fm.save(os.path.join(folder, "map.joblib"))
        ...     kafeat.load(os.path.join(folder, "map.joblib"))
        FeatureMap(standardize: 1 inputs, 1 features, float32)
        """
        data, place = self.dumps(), f"{os.fspath(path)} (read back before it is put in place)"
        serialize.loads(type(self), data, place)
        write_file(path, data, overwrite, fsync=fsync)

    def __eq__(self, other: object) -> bool:
        return self._content == other._content if isinstance(other, SavedMap) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content)

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle holds the bytes of the file, which later versions can read even if they move classes. A map that
        # cannot be saved has no such bytes.
        if self._unsaved:
            names = [one.name for one in fields(self)]  # type: ignore[arg-type]  # `self` is a dataclass
            return type(self), tuple(getattr(self, name) for name in names)
        return serialize.loads, (type(self), self.dumps(), "<pickle>")

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 of the saved file in hex, as `sha256sum` prints it.

        None for a map that cannot be saved, because its kernel is a Python function.
        """
        return None if self._unsaved else str(self._content)

    @cached_property
    def _content(self) -> object:
        """A value that is equal for equal maps only: the digest, or a new object if the map cannot be saved."""
        return object() if self._unsaved else hashlib.sha256(self.dumps()).hexdigest()

    @property
    def _unsaved(self) -> bool:
        return any(fitted.step.traits.unsaved for fitted in self.chain.steps)
