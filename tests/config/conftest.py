from pathlib import Path

import pytest

import kafeat.predictors
import kafeat.samplers
import kafeat.scalers


@pytest.fixture
def toys(monkeypatch):
    """The only kinds are the toys."""
    monkeypatch.setattr(kafeat.samplers, "__path__", [str(Path(__file__).parent / "toys")])
    monkeypatch.setattr(kafeat.scalers, "__path__", [])
    monkeypatch.setattr(kafeat.predictors, "__path__", [])


@pytest.fixture
def problems(tmp_path, monkeypatch):
    """The mistakes in a config: a text becomes the file c.yaml, a dict is used as it is."""
    from kafeat.config import load_config
    from kafeat.errors import ConfigError

    monkeypatch.chdir(tmp_path)

    def of(source):
        if isinstance(source, (str, bytes)):
            Path("c.yaml").write_bytes(source.encode() if isinstance(source, str) else source)
            source = "c.yaml"
        with pytest.raises(ConfigError, match=r"expected .*, got ") as caught:
            load_config(source)
        assert str(caught.value) == "\n".join(caught.value.problems)
        return list(caught.value.problems)

    return of
