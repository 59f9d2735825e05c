"""Chains of fitted steps, the tiles that pass through them, and their precision."""

from kafeat.chain.blas import one_blas_thread
from kafeat.chain.chain import Chain, FitCache
