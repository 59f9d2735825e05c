"""What a user may write: type-checked against the installed wheel, and run."""

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
