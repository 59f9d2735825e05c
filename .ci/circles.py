"""Refuse circles: files of kafeat that import each other, on whatever way round."""

import graphlib
import sys

import grimp

graph = grimp.build_graph("kafeat", cache_dir=None)
try:
    graphlib.TopologicalSorter(
        {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    ).prepare()
except graphlib.CycleError as error:
    sys.exit(f"expected no circle of imports, got: {' -> '.join(reversed(error.args[1]))}")
