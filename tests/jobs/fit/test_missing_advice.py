"""Errors of a fit about missing values name the step that fills them in; other errors do not."""

import re

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

import kafeat
from kafeat.errors import DataError

CONFIG = {"steps": [{"kind": "standardize"}]}
ADVICE = "; to fill in missing values, make `impute` the first step of the config"


@pytest.mark.parametrize(("data", "got"), [
    (pa.table({"x": [1.0, None]}), "number, got null"),
    (pa.table({"x": [1.0, np.nan]}), "number, got nan"),
    (pa.table({"x": pa.array([[1.0, 2.0], None], pa.list_(pa.float64(), 2))}), "numbers, got null"),
    (np.array([[1.0], [np.nan]]), "number, got nan"),
    (sp.csr_array([[1.0], [np.nan]]), "number, got nan"),
])  # fmt: skip
def test_a_missing_value_is_said_with_its_remedy_and_the_remedy_works(data, got):
    with pytest.raises(DataError, match=f"row 2 .*{got}{re.escape(ADVICE)}$"):
        kafeat.fit(CONFIG, data)
    kafeat.fit({"steps": ["impute", *CONFIG["steps"]]}, data)


def test_an_empty_field_is_a_missing_value(tmp_path):
    (tmp_path / "in.csv").write_text("x,y\n1,2\n,4\n")
    with pytest.raises(DataError, match=f"in.csv: row 2 .*'x': .*got null{re.escape(ADVICE)}$"):
        kafeat.fit(CONFIG, tmp_path / "in.csv")


@pytest.mark.parametrize("data", [pa.table({"x": one}) for one in ([1.0, np.inf], [[1.0], [1.0, 2.0]])])
def test_impute_is_no_remedy_for_what_is_wrong_in_another_way(data):
    with pytest.raises(DataError, match=r"got (inf|'two'|2|.*list.*)$"):
        kafeat.fit(CONFIG, data)


def test_a_transform_does_not_advise_to_change_the_config():
    fm = kafeat.fit(CONFIG, pa.table({"x": [1.0, 2.0]}))
    with pytest.raises(DataError, match="got null(?!.*impute)"):
        fm.transform(pa.table({"x": [1.0, None]}))
