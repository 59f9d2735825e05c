"""The config: the recipe of a map, read from YAML or a mapping, with the place of every mistake."""

from kafeat.config.load import load_config
from kafeat.config.model import Config, Steps
from kafeat.config.template import commented
