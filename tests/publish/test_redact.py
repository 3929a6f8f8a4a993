"""What must not be published, and what must not be touched."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hetero_test.publish.redact import Redactor, secrets_of

if TYPE_CHECKING:
    from hetero_test.publish.redact import Pair


SERVICE_KEYS = (
    "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "rk_test_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "SG." + "a1B2" * 5 + "ab." + "a1B2" * 10 + "abc",
    "AC" + "0123456789abcdef" * 2,
    "0123456789abcdef" * 2 + "-us12",
    "123456789:" + "AAbC1" * 7,
    "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "sq0csp-" + "0a1B" * 10 + "abc",
    "shpat_" + "0123456789abcdef" * 2,
    "dop_v1_" + "0123456789abcdef" * 4,
    "dapi" + "0123456789abcdef" * 2,
    "dckr_pat_" + "a1B2" * 7,
    "hvs." + "a1B2" * 8,
    "tskey-auth-" + "kA1b2C3" * 3,
    "gsk_" + "a1B2" * 12,
    "r8_" + "a1B2" * 10,
    "xai-" + "a1B2" * 12,
    "glsa_" + "a1B2" * 10,
    "ya29." + "a1B2" * 12,
    "GOCSPX-" + "a1B2" * 7,
    "glcbt-" + "a1B2" * 6,
    "ABIA" + "QWERTYUIOP123456",
    "AKC" + "p8tQ" * 10,
)
"""Made up, in the shapes that their services document; in two parts, so that no scanner cries."""


def pairs(**changed: object) -> tuple[Pair, ...]:
    """The secrets of an ordinary machine; everything can be changed."""
    given: dict[str, object] = {
        "argv": ("hetero-test", "--build-dir", "/home/alice/strata/build", "--"),
        "model_flags": ("--pack", "/data/models/pack", "--native", "/data/models/shard1.gguf"),
        "env": (),
        "build_dir": "/home/alice/strata/build",
        "out_dir": "/home/alice/runs/today",
        "home": "/home/alice",
        "user": "alice",
        "host": "rumpelkammer.example.com",
    }
    return secrets_of(**{**given, **changed})  # type: ignore[arg-type]


def redactor(**changed: object) -> Redactor:
    """A redactor for such a machine."""
    return Redactor(pairs=pairs(**changed))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/alice/strata/build/strata", "<build>/strata"),
        ("/home/alice/runs/today/report.md", "<out>/report.md"),
        ("/data/models/pack/dense.bin", "<model>/pack/dense.bin"),
        ("/home/alice/.cache", "~/.cache"),
        ("alice@rumpelkammer:~$", "<user>@<host>:~$"),
        ("built by alice on RUMPELKAMMER", "built by <user> on <host>"),
        ("/srv/alice/x", "/srv/<user>/x"),
        ("/home/bob/x and /Users/carol/y", "/home/<user>/x and /Users/<user>/y"),
        ("C:\\Users\\dave\\AppData", "C:\\Users\\<user>\\AppData"),
        ("-I/data/models", "-I<model>"),
        ("file:///data/models/a", "file://<model>/a"),
        ("http://rumpelkammer:8080/", "http://<host>:8080/"),
        ("listening on 192.168.178.20:8080", "listening on <ip>:8080"),
        ("peer fe80::1ff:fe23:4567:890a%eth0", "peer <ip>%eth0"),
        ("[2001:db8::7]:50052", "[<ip>]:50052"),
        ("link/ether 3c:7c:3f:aa:bb:cc", "link/ether <mac>"),
        ("mail kim.doe@example.com now", "mail <mail> now"),
        ("https://bob:hunter2@x.example/y", "https://<credentials>@x.example/y"),
        ("git+https://token123456@host.example/r", "git+https://<credentials>@host.example/r"),
        ("Authorization: Bearer abc.DEF-xyz", "Authorization: Bearer <secret>"),
        ("sent bearer abc.DEF-123", "sent bearer <secret>"),
        ("scanned 10.1.2.3-10.1.2.9", "scanned <ip>-<ip>"),
        ("--api-key hunter22 --spec 4", "--api-key <secret> --spec 4"),
        ("--api-key=hunter22", "--api-key=<secret>"),
        ("HF_TOKEN=hunter22 OPENAI_API_KEY=x1y2z3", "HF_TOKEN=<secret> OPENAI_API_KEY=<secret>"),
        ('{"api_key": "hunter22"}', '{"api_key": "<secret>"}'),
        ("https://x.example/?token=hunter22&a=1", "https://x.example/?token=<secret>&a=1"),
        ("sk-proj-abcdefghijklmnop1234", "<secret>"),
        ("hf_AbCdEfGhIjKlMnOpQrSt", "<secret>"),
        ("ghp_0123456789abcdefghij", "<secret>"),
        ("AKIAIOSFODNN7EXAMPLE", "<secret>"),
        ('"C:\\\\Users\\\\dave\\\\m.gguf"', '"C:\\\\Users\\\\<user>\\\\m.gguf"'),
        ("C:\\Users\\Kim Doe\\m.gguf", "C:\\Users\\<user>\\m.gguf"),
        ('"D:\\\\Users\\\\Kim van Doe\\\\m"', '"D:\\\\Users\\\\<user>\\\\m"'),
        ("C:/Users/Kim Doe/m.gguf", "C:/Users/<user>/m.gguf"),
        ("C:\\Users\\dave was here", "C:\\Users\\<user> was here"),
        ("~carol/models/m.gguf", "~<user>/models/m.gguf"),
        ("ssh kim@tower ls", "ssh <user>@<host> ls"),
        ("scp kim@tower.lan:/m .", "scp <mail>:/m ."),
        ("root@203.0.113.9's", "<user>@<host>'s"),
        ("Server=x;Uid=kim;Pwd=hunter2;", "Server=x;Uid=kim;Pwd=<secret>;"),
        ("pwd: hunter2", "pwd: <secret>"),
        ("passphrase=hunter2 ok", "passphrase=<secret> ok"),
        ('"passphrase": "hunter2"', '"passphrase": "<secret>"'),
        ("token=hunter22x and", "token=<secret> and"),
        ('{"token": "hunter22x"}', '{"token": "<secret>"}'),
        ("sshpass -p hunter2 ssh x", "sshpass -p <secret> ssh x"),
        ("sshpass -p'hunter2' ssh x", "sshpass -p'<secret>' ssh x"),
        ("AccountName=x;AccountKey=" + "Ab1/" * 21 + "==;", "AccountName=x;AccountKey=<secret>;"),
        ("SharedAccessKey=abc123=", "SharedAccessKey=<secret>"),
        ("Cookie: session=abc; theme=dark", "Cookie: <secret>"),
        ("set-cookie: sid=abc123", "set-cookie: <secret>"),
        (
            "-----BEGIN EC PRIVATE KEY-----\nb3Bl\n-----END EC PRIVATE KEY-----",
            "<secret>",
        ),
        *((key, "<secret>") for key in SERVICE_KEYS),
    ],
)
def test_what_identifies_is_replaced(text: str, shown: str) -> None:
    """Names, folders, addresses and keys never reach a page."""
    assert redactor()(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "session is up (engine 0.1.40.3)",
        "0.1.40.3",
        "cuBLAS version 12.4.5.8",
        "driver 550.54.15, CUDA 12.4",
        "v1.2.3.4",
        "md5 12e45678abcd and 00012345",
        "sha256 " + "ab12" * 16,
        "NVIDIA GeForce RTX 3090, compute capability 8.6",
        "AMD Radeon RX 7900 GRE",
        "CUDA_VISIBLE_DEVICES=GPU-8a7b1c2d-1234-5678-9abc-def012345678",
        "0000:01:00.0 and 00000000:41:00.0",
        "12:30:45 took 60 s",
        "std::vector<ggml::tensor>",
        "Basic settings, bearer of news",
        "cudnn-9.1.0.70 and 1.2.3.4-dirty",
        "STRATA_EOS_TOKEN=2",
        "127.0.0.1:8080 and ::1",
        "--tokens 95 --tokens-file p.txt --max-new-tokens 5",
        "--stream-token --spec 4",
        "eos_token=2 bos token = 1 '<s>'",
        "tokenizer.ggml.add_bos_token=bool:false",
        "disk-aligned-buffers-of-the-cache",
        "60 tokens in 8303.7 ms  ->  7.23 tok/s",
        "accepted 38 of 62 (0.613)",
        "-ot 'blk\\..*=CPU'",
        "/database/models",
        "https://huggingface.co/org/repo",
        "ggml-org/models:Q4_K_M",
        "d41d8cd98f00b204e9800998ecf8427e",
        "sha1 da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL.gguf",
        "DeepSeek-R1-Distill-Llama-70B-IQ4_XS, Meta-Llama-3.1-8B-Instruct",
        "MiniMax-M2.1-GGUF/BF16 and NousResearch/Hermes-4-14B",
        "token=220 token = 198 '\\n' EOS token = 151645 '<|im_end|>'",
        '"token": 13',
        "token ids 84639 43515 75708 6902",
        "PWD=/work/x OLDPWD=/tmp pwd: ./build",
        "cookies are kept, passes 3, keyed=yes",
        "1: B@5011 and 0: A@4400, engine@v1.2, model@b6123, 16 lanes @ 16 GT/s",
        "~5 GiB/s, about ~80/100, a~b/c",
        "SKU AC97 SG.1 key-value hvs.so secret_sauce",
        "-sm row -ot exps=CPU --spec-type draft-simple --cache-type-k q8_0",
        "sshpass is not installed",
    ],
)
def test_what_a_number_needs_is_kept(text: str) -> None:
    """Versions, hashes, GPU names, bus ids, loopback and public names are left alone."""
    assert redactor()(text) == text


def test_the_same_thing_gets_the_same_placeholder() -> None:
    """Addresses are numbered by first appearance, wherever they show up."""
    flags = ("--rpc", "10.0.0.5:50052,10.0.0.6:50052")
    redact = redactor(model_flags=flags).learn(["new 10.0.0.9 after 10.0.0.6"])

    assert redact("10.0.0.6 10.0.0.5 10.0.0.9 10.0.0.6") == "<ip-2> <ip-1> <ip-3> <ip-2>"


def test_a_known_version_is_no_address() -> None:
    """A version that the engine told is kept, however much it looks like an address."""
    redact = Redactor().learn(["running 1.2.3.4 at 10.1.1.1"], versions=["1.2.3.4"])

    assert redact("running 1.2.3.4 at 10.1.1.1") == "running 1.2.3.4 at <ip-1>"


def test_an_address_with_a_port_is_one_even_after_the_word_version() -> None:
    """A port settles it."""
    assert Redactor()("version 10.1.2.3:80") == "version <ip>:80"


def test_a_folder_with_odd_characters_is_found() -> None:
    """Blanks, signs and letters of any alphabet are only characters."""
    redact = redactor(
        model_flags=("-m", "/p/my models #1 (ö+)/x.gguf"), user="jörg", home="/h/jörg"
    )

    assert redact("/p/my models #1 (ö+)/x.gguf by jörg") == "<model>/x.gguf by <user>"


def test_several_model_folders_are_told_apart() -> None:
    """Each folder has a placeholder of its own; the longest match wins."""
    redact = redactor(model_flags=("-m", "/a/one/x.gguf", "-md", "/a/one/two/y.gguf"))

    assert redact("/a/one/x.gguf /a/one/two/y.gguf") == "<model>/x.gguf <model-2>/y.gguf"


def test_a_key_in_the_flags_is_found_in_the_log_too() -> None:
    """A secret value is replaced wherever it shows up, not only beside its flag."""
    redact = redactor(model_flags=("--api-key", "s3cr3t-value"))

    assert redact("the server uses s3cr3t-value now") == "the server uses <secret> now"


def test_a_key_in_the_environment_is_found_in_the_log_too() -> None:
    """Names that end like a key are taken for one."""
    redact = redactor(env=(("HF_TOKEN", "s3cr3t-value"), ("STRATA_IQ_MT_MIN", "1")))

    assert redact("got s3cr3t-value, T=1") == "got <secret>, T=1"


def test_an_argument_after_a_secret_flag_is_hidden_whatever_it_is() -> None:
    """In an argument vector the value stands alone, and may be as short as it likes."""
    assert redactor().argv(["--api-key", "k", "-m", "/data/models/x.gguf", "-hft", "t"]) == (
        "--api-key",
        "<secret>",
        "-m",
        "<model>/x.gguf",
        "-hft",
        "<secret>",
    )
    assert redactor().argv(["sshpass", "-p", "k", "--pwd", "k", "-p", "4"]) == (
        *("sshpass", "-p", "<secret>", "--pwd", "<secret>", "-p", "4"),
    )


@pytest.mark.parametrize("user", ["a", "me", "root", "main", "draft", "max", "ubuntu", "spec"])
def test_a_user_whose_name_is_a_word_does_not_spoil_the_text(user: str) -> None:
    """Such a name is replaced only where it can be nothing else."""
    redact = redactor(
        user=user, home=f"/home/{user}", model_flags=("--spec", "4", "--main-device", "0")
    )
    text = f"--max-new 60: a main {user} draft spec 4, tok/s 7.23, model {user}/x"

    assert redact(text) == text
    assert redact(f"{user}@somewhere /home/{user}/x") == "<user>@somewhere ~/x"


@pytest.mark.parametrize("host", ["gpu", "box", "rtx", "strata", "localhost"])
def test_a_host_whose_name_is_a_word_does_not_spoil_the_text(host: str) -> None:
    """A host called gpu leaves every GPU alone."""
    text = f"strata generate: gpu 0, rtx 3090, {host} memory" if host != "box" else "a boxed set"

    assert redactor(host=host)(text) == text


def test_a_host_whose_name_is_a_word_is_found_after_an_at_sign_and_in_urls() -> None:
    """There it can be nothing else."""
    assert redactor(host="gpu")("alice@gpu http://gpu:80/") == "<user>@<host> http://<host>:80/"


def test_the_empty_machine_redacts_by_shape_alone() -> None:
    """Facts that could not be told hide nothing and break nothing."""
    redact = redactor(home="", user="", host="", build_dir="", out_dir="", model_flags=())

    assert redact("tok/s at / and . and ~") == "tok/s at / and . and ~"


def test_a_home_that_is_the_root_folder_is_no_secret() -> None:
    """Every path would become a tilde."""
    assert redactor(home="/")("/usr/lib/x") == "/usr/lib/x"


def test_off_changes_nothing() -> None:
    """For private use."""
    text = "alice@rumpelkammer 10.0.0.5 HF_TOKEN=hunter22"

    assert Redactor.off()(text) == text
    assert Redactor.off().argv(["--api-key", "x"]) == ("--api-key", "x")
    assert Redactor.off().learn([text])(text) == text


PIECES = st.sampled_from(
    [
        "/home/alice", "/home/alice/strata/build", "/data/models", "alice", "rumpelkammer", "@",
        "/", ".", ":", "=", " ", "-", "10.0.0.5", "fe80::1", "--api-key", "HF_TOKEN=", "https://",
        "<model>", "<user>", "<ip-1>", "~", "x", "1", "token", "Bearer ", "\n", '"', "é",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=12).map("".join)


@given(TEXTS)
@example("/home/alice/home/alice")
@example("alice@alice@rumpelkammer.example.com")
@example("--api-key alice:pass@10.0.0.5")
def test_redacting_twice_changes_nothing(text: str) -> None:
    """A placeholder is never replaced, and replacing never makes a new secret."""
    redact = redactor()

    assert redact(redact(text)) == redact(text)


NAME = st.from_regex(r"[bcdfghjkz][aeiou][bcdfghjkz]{2}[aeiou]x{2}[a-z]{0,4}", fullmatch=True)


@given(user=NAME, host=NAME, before=TEXTS, after=TEXTS)
def test_a_name_that_stands_alone_never_survives(
    user: str, host: str, before: str, after: str
) -> None:
    """Whatever stands around them, the names of user and host are gone."""
    redact = redactor(user=user, host=host, home=f"/home/{user}")

    shown = redact(f"{before} {user} {after} /srv/{user}/x {user}@{host} {host}")

    assert not re.search(rf"(?<![A-Za-z0-9_])(?:{user}|{host})(?![A-Za-z0-9_])", shown)


FOLDER = st.from_regex(r"/[a-z]{3,8}/[A-Za-z0-9_-]{2,12}", fullmatch=True)


@given(folder=FOLDER, name=st.from_regex(r"[a-z]{1,8}\.gguf", fullmatch=True))
def test_the_folder_of_a_model_never_survives(folder: str, name: str) -> None:
    """Wherever the path is quoted, glued to a flag or part of a URL."""
    redact = redactor(model_flags=("-m", f"{folder}/{name}"))

    for text in (f"{folder}/{name}", f"-m{folder}/{name}", f"'{folder}'", f"file://{folder}/x"):
        assert folder not in redact(text)


@given(
    st.tuples(*[st.integers(0, 255)] * 4).filter(lambda n: n[0] not in {0, 127, 255}),
    st.integers(1, 65535),
)
def test_an_address_with_a_port_never_survives(numbers: tuple[int, ...], port: int) -> None:
    """Any IPv4 address that is not loopback."""
    address = ".".join(map(str, numbers))

    assert redactor()(f"connect {address}:{port}") == f"connect <ip>:{port}"


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "a.",
        "a-",
        "ab@",
        "~a",
        "0a",
        "a b ",
        "a:",
        "\\",
        "token=",
        "cookie: a=b; ",
        "-----BEGIN ",
    ],
)
def test_a_long_line_takes_no_longer_than_its_length(part: str) -> None:
    """Junk of an engine is redacted in a time that grows with its length and no faster."""
    redact = Redactor()
    began = time.monotonic()
    redact(part * (200_000 // len(part)))
    assert time.monotonic() - began < 5
