"""Made-up rows with the columns of the Adult table: `made_up_adult.py ROWS FILE.csv`

Education, hours and marriage raise the chance of a high income, as they do in the real table.
"""

import sys

import numpy as np
import pyarrow as pa
from pyarrow import csv

rows, target = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
SCHOOLS = [
    "HS-grad",
    "Some-college",
    "Bachelors",
    "Masters",
    "11th",
    "Doctorate",
]
YEARS = np.array([9, 10, 13, 14, 7, 16])


def draw(*names: str) -> pa.Array:
    return pa.array(
        np.array(names)[rng.integers(len(names), size=rows)].tolist()
    )


school = rng.choice(
    len(SCHOOLS), size=rows, p=[0.34, 0.26, 0.2, 0.08, 0.08, 0.04]
)
age, hours = (
    rng.integers(17, 80, size=rows),
    np.clip(rng.normal(40, 12, size=rows), 1, 99).astype(int),
)
married = rng.random(rows) < 0.45
gain = np.where(
    rng.random(rows) < 0.08, rng.lognormal(8.5, 1.0, size=rows), 0.0
).astype(int)
chance = (
    0.45 * (YEARS[school] - 10)
    - 0.004 * (age - 48.0) ** 2
    + 2.0 * married
    + 0.05 * (hours - 40)
    - 1.2
)
rich = rng.random(rows) < 1.0 / (1.0 + np.exp(-(chance + 2.5 * (gain > 5000))))
work = draw(
    "Private", "Private", "Private", "Self-emp-not-inc", "Local-gov"
).to_pylist()
csv.write_csv(
    pa.table(
        {
            "age": age,
            "workclass": [
                None if rng.random() < 0.06 else name for name in work
            ],
            "education": [SCHOOLS[i] for i in school],
            "education-num": YEARS[school],
            "marital-status": np.where(
                married, "Married-civ-spouse", "Never-married"
            ).tolist(),
            "occupation": draw(
                "Craft-repair",
                "Sales",
                "Prof-specialty",
                "Adm-clerical",
                "Other-service",
            ),
            "capital-gain": gain,
            "hours-per-week": hours,
            "native-country": draw(
                "United-States",
                "United-States",
                "United-States",
                "Mexico",
                "India",
            ),
            "income": np.where(rich, ">50K", "<=50K").tolist(),
        }
    ),
    target,
)
