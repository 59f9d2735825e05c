"""Code that ends the program: of the user, and of rich where the reader of a pipe has closed it."""

import subprocess
import sys

import numpy as np


def test_a_kernel_that_exits_is_no_success(in_process, tmp_path, monkeypatch):
    (tmp_path / "exiting_kernel.py").write_text("import sys\n\n\ndef kernel(X, Y):\n    sys.exit(0)\n")
    (tmp_path / "x.csv").write_text("a,b\n" + "".join(f"{i},{i * i}\n" for i in range(30)))
    (tmp_path / "k.yaml").write_text(
        'steps:\n  - {kind: nystroem, kernel: "exiting_kernel:kernel", n_components: 4}\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    done = in_process("fit", "--config", "k.yaml", "x.csv", "m.joblib", "--allow-import", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected code that returns, got exit(0)" in done.stderr
    assert not (tmp_path / "m.joblib").exists()


def test_a_closed_pipe_behind_a_table_is_no_error(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(80.0).reshape(40, 2))
    (tmp_path / "p.yaml").write_text("steps:\n  - {kind: projection, n_components: 2}\n")
    words = ("evaluate", "--config", "p.yaml", "x.npy", "--jobs", "1")
    command = [sys.executable, "-W", "ignore", "-m", "kafeat", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as run:
        run.stdout.close()
        assert b"expected" not in run.stderr.read()
        assert run.wait() == 0
