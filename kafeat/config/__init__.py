"""The config: what `fit` is told, and where in a file every mistake in it is."""

from kafeat.config.load import load_config
from kafeat.config.model import Config

__all__ = ["Config", "load_config"]
