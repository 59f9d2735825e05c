"""rich ends the program where the reader of a pipe has closed it."""

import numpy as np

from tests.zygote import Process


def test_a_closed_pipe_behind_a_table_is_no_error(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(80.0).reshape(40, 2))
    (tmp_path / "p.yaml").write_text("steps:\n  - {kind: projection, n_components: 2}\n")
    with Process("evaluate --config p.yaml x.npy --jobs 1", cwd=tmp_path) as run:
        run.stdout.close()
        assert b"expected" not in run.stderr.read()
        assert run.wait() == 0
