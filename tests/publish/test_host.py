"""What an engine prints of this machine that no flag spelled that way."""

from __future__ import annotations

from pathlib import Path

import pytest

from hetero_test.publish.host import host_secrets
from hetero_test.publish.redact import Redactor, secrets_of


def redactor(build: Path, out: Path, *flags: str) -> Redactor:
    """The redactor of a command with these model flags."""
    return Redactor(
        pairs=host_secrets(argv=(), model_flags=flags, env=(), build_dir=build, out=out)
    )


def test_links_are_followed_to_what_must_not_be_published(tmp_path: Path) -> None:
    """An engine that resolves the links in its paths gives no folder away."""
    store = tmp_path / "vault"
    for name in ("engine", "models", "results"):
        (store / name).mkdir(parents=True)
    (store / "models" / "big.gguf").touch()
    short = tmp_path / "short"
    short.mkdir()
    (short / "build").symlink_to(store / "engine")
    (short / "out").symlink_to(store / "results")
    (short / "m.gguf").symlink_to(store / "models" / "big.gguf")
    redact = redactor(short / "build", short / "out", "--model", str(short / "m.gguf"))
    assert redact(f"loading {store}/models/big.gguf") == "loading <model>/big.gguf"
    assert redact(f"{store}/engine/strata") == "<build>/strata"
    assert redact(f"{store}/results/report.md") == "<out>/report.md"


def test_a_relative_model_has_a_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag says ``weights/m.gguf``; the engine prints where that is."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "m.gguf").touch()
    monkeypatch.chdir(tmp_path)
    redact = redactor(tmp_path / "build", tmp_path / "out", "--model=weights/m.gguf")
    assert str(tmp_path) not in redact(f"open {tmp_path}/weights/m.gguf: no such file")


def test_credentials_of_an_address_are_hidden_wherever_they_are_printed() -> None:
    """A password given in a URL is a secret beside it as well."""
    redact = Redactor(
        pairs=secrets_of(
            argv=("--url", "https://alice:correct-horse@h.example/x"),
            model_flags=(),
            env=(("HTTPS_PROXY", "http://proxyuser:battery77@10.0.0.1:3128"),),
            build_dir="/b/build",
            out_dir="/b/out",
            home="/home/x",
            user="nobody-here",
            host="no-host-here",
        )
    )
    for text in ("auth alice:correct-horse@h", "pw=correct-horse", "login battery77 refused"):
        shown = redact(text)
        assert "correct-horse" not in shown
        assert "battery77" not in shown
