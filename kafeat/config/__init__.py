"""Read a config (the recipe of a map) from YAML or a mapping, and report the line and column of every mistake."""

from kafeat.config.load import load_config
from kafeat.config.model import Config, Steps
from kafeat.config.template import commented
