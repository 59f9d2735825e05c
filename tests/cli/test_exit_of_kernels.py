"""Code that ends the program: of the user, and of rich where the reader of a pipe has closed it."""

import subprocess
import sys

import kafeat


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
    model = tmp_path / "m.joblib"
    kafeat.fit({"steps": [{"kind": "standardize"}]}, [[1.0], [2.0]]).save(model)
    command = [sys.executable, "-m", "kafeat", "inspect", str(model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait() == 0
