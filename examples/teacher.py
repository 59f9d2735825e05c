"""A fast student of a slow teacher. `teacher.py TABLE MODEL [TEACHER [CONFIG]]`

TABLE is Parquet with numbers and `label`. A fifth is for the test, and a third
of the rest is labelled. TEACHER is `svm` (the default), `trees` or `catboost`.
It predicts the labelled rows by models that have not seen them, and labels the
others. The student learns from all of them, and MODEL is its file.
"""

import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import kafeat

LINEAR = {"steps": ["standardize", {"kind": "ridge"}]}
STUDENT = {
    "steps": [
        "standardize",
        {"kind": "nystroem", "n_components": 256},
        {"kind": "ridge", "task": "soft"},
    ]
}


def teacher_of(name):
    if name == "catboost":
        from catboost import CatBoostClassifier

        return CatBoostClassifier(verbose=0, thread_count=1, random_seed=0)
    if name == "trees":
        return ExtraTreesClassifier(500, random_state=0)
    machine = make_pipeline(StandardScaler(), SVC(C=10.0))
    return BaggingClassifier(machine, 50, random_state=0)


table, model, name, config = [
    *sys.argv[1:],
    *["svm", STUDENT][len(sys.argv) - 3 :],
]
rows = pq.read_table(table)
y = np.array(rows["label"].to_pylist()).astype(str)
rows = rows.drop_columns(list({"label", "split"} & {*rows.column_names}))
X = np.column_stack([column.to_numpy() for column in rows.columns])
order = np.random.default_rng(0).permutation(len(X))
test, train = np.split(order, [len(X) // 5])
labelled, others = np.split(train, [len(train) // 3])

teacher = teacher_of(name)
held_out = cross_val_predict(
    teacher, X[labelled], y[labelled], cv=5, method="predict_proba"
)
teacher.fit(X[labelled], y[labelled])
P = np.vstack([held_out, teacher.predict_proba(X[others])])
taught, labels = rows.take(train), [f"p_{one}" for one in teacher.classes_]
for label, column in zip(labels, P.T, strict=True):
    taught = taught.append_column(label, pa.array(column))
student = kafeat.fit(config, taught, label=labels, jobs=1)
student.save(model)
linear = kafeat.fit(LINEAR, rows.take(labelled), label=y[labelled], jobs=1)

right = {}
for who, predict, of_rows, n in (
    ("ridge", linear.predict, rows.take, 100_000),
    ("teacher", teacher.predict, X.__getitem__, 5_000),
    ("student", student.predict, rows.take, 100_000),
):
    right[who] = np.mean(np.ravel(predict(of_rows(test))) == y[test])
    many = of_rows(np.resize(test, n))
    started = time.process_time()
    predict(many)
    speed = n / (time.process_time() - started)
    print(f"{who}: accuracy {right[who]:.4f}, {speed:,.0f} rows a second")
gain = right["teacher"] - right["ridge"]
share = (right["student"] - right["ridge"]) / gain
print(f"The student keeps {share:.0%} of the teacher's gain over ridge.")
