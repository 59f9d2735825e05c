"""Pictures of maps, drawn by matplotlib."""

from kafeat.pictures.canvas import STYLES, Picture, Style, cycle, drawn, legend, new_axes
from kafeat.pictures.portraits import MapFigures, ModelFigures, map_figures, same_map
from kafeat.pictures.tables import (
    COUNT,
    LEFT,
    MEGABYTES,
    SECONDS,
    Column,
    TableColumn,
    html_table,
    laid,
    spell_number,
    spell_seconds,
    text_table,
)
