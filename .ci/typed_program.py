"""A program of a user. `make lint` checks its types, and `make package` runs it with the installed wheel."""

import sys

import numpy as np

import kafeat
from kafeat.errors import KafeatError

config = {"steps": [{"kind": "standardize"}, {"kind": "projection", "n_components": 8}]}
X = np.random.default_rng(0).standard_normal((100, 20))
feature_map: kafeat.FeatureMap = kafeat.fit(config, X)
feature_map.save(sys.argv[1])
try:
    Z = kafeat.load(sys.argv[1]).transform(X)
except KafeatError as error:
    code: int = error.exit_code
    raise SystemExit(code) from error
width: int = Z.shape[1]
assert width == 8
assert Z.dtype == np.float32


def mistakes(data: str) -> None:
    """A type checker finds these: an `ignore` that is not needed is an error."""
    written: int = kafeat.predict(data, "y.csv", model=feature_map, interval=0.9).rows
    kafeat.predict(data, "y.csv", model=feature_map, features=True)  # type: ignore[call-arg]
    kafeat.predict(data, "y.csv", model=feature_map, keep=written)  # type: ignore[arg-type]
    kafeat.transform(data, "z.npy", model=feature_map, feature=True)  # type: ignore[call-arg]
    kafeat.fit(config, X, labels=X[:, 0])  # type: ignore[call-arg]
    kafeat.tune(X, X[:, 0], trial=3)  # type: ignore[call-arg]
    kafeat.evaluate(feature_map, data, lable="y")  # type: ignore[call-arg]
