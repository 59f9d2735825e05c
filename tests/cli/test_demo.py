"""`kafeat demo` in folders with odd names."""


def test_an_empty_name_is_the_current_folder(run, tmp_path):
    done = run("demo", "", cwd=tmp_path)
    assert (tmp_path / "configs" / "ridge.yaml").exists()
    assert "next: kafeat tune" in done.stdout


def test_the_next_command_can_be_pasted_whatever_the_name(in_process, tmp_path):
    done = in_process("demo", "a b", cwd=tmp_path)
    assert "next: cd 'a b' && kafeat tune" in done.stdout
    assert in_process("demo", "s3://bucket/folder").returncode == 2
