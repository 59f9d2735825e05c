"""A script as users write it: everything at once, with pandas and scikit-learn. SOURCE TARGET DTYPE GAMMA COMPONENTS"""

import sys

import pandas as pd
from sklearn.kernel_approximation import RBFSampler

source, target, dtype, gamma, components = sys.argv[1:]
X = pd.read_parquet(source).to_numpy()
if dtype == "float32":
    X = X.astype("float32")
sampler = RBFSampler(gamma=float(gamma), n_components=int(components), random_state=0).fit(X)
Z = sampler.transform(X)
pd.DataFrame(Z, columns=[f"f{i}" for i in range(Z.shape[1])]).to_parquet(target)
