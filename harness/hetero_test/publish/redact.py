"""What must not be published, and what stands in its place.

Replaced: the host's and the user's name, home, model, build and output folders, IP and MAC
addresses, mail addresses, credentials in URLs, and keys, tokens and passwords in flags, in the
environment and by their well-known shapes. The same thing gets the same placeholder.

Kept, because a number means nothing without it or because it identifies nobody: models and
UUIDs of GPUs (a device mask is useless without them), drivers, versions (four parts as in
``0.1.40.3`` are no address), hashes, loopback addresses, names of public hosts and file names.

A name that is also a word (a user ``main``, a host ``gpu``) or has fewer than three letters is
replaced only where it can be nothing else: in a home folder, before or after an ``@``, in a URL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from hetero_test.publish.secrets import PATTERNS, SECRET_WORD, addresses, by_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Pair = tuple[str, str]

MOST_PASSES = 5
"""Replacing is repeated until nothing changes; a placeholder is never replaced again."""

_PLACEHOLDER = r"<(?:model|build|out|host|user|ip|mac|mail|secret|credentials)(?:-\d+)?>"

_WORDS = frozenset(
    """
    a admin ada ampere amd and ann arc auto backend baseline batch blackwell build cache cell
    chunk cluster context core cores cpu cuda data debian decode default device disk draft drafter
    driver effect engine exact expert experts fail feed file files flag flags free gguf gpu gpus
    group head hip home hopper host intel kernel key layer layers lib link linux llama load local
    localhost log lovelace main mark max media memory metal min model models native node not nvidia
    off offer old on one order out pack pascal pass path peer pinned pool port prefill probe
    process profile prompt quadro radeon ram rank reference repeat report residency result rig
    rocm role roles root round rounds row rtx run runs sample server session set shared slot slots
    socket spec split start state strata stream swap system table tail task tensor tesla test
    text the thread time titan token tokens total tune turing ubuntu unit unknown use user variant
    verdict verify video volta vulkan warm warmup wait window work worker xeon zen
    """.split()  # noqa: SIM905 - a list of quoted words would fill the page
)
"""Words of engine logs and reports; a name among them is replaced only in a telling place."""

_PUBLIC_NAMES = ("-hf", "-hfr", "--hf-repo", "-hff", "--hf-file", "-hfd", "--hf-repo-draft")
"""Flags whose value looks like a path but names a public repository."""

_FILE = re.compile(r"(?i)\.(?:gguf|bin|safetensors|txt|json|jinja|csv|dat|npz?)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redactor:
    """Text in, publishable text out; calling it twice changes nothing more.

    Attributes:
        pairs: literal texts and their placeholders, see :func:`secrets_of`.
        patterns: whether addresses, credentials and keys are looked for by their shape.
    """

    pairs: tuple[Pair, ...] = ()
    patterns: bool = True

    @classmethod
    def off(cls) -> Redactor:
        """One that changes nothing, for ``--no-redact``."""
        return cls(pairs=(), patterns=False)

    def __call__(self, text: str) -> str:
        """``text`` as it may be published."""
        if not text or not (self.pairs or self.patterns):
            return text
        return _replacer(self.pairs, self.patterns)(text)

    def argv(self, args: Iterable[str]) -> tuple[str, ...]:
        """An argument vector, where a flag's value is an argument of its own."""
        out: list[str] = []
        hide, before = False, ""
        for arg in args:
            hidden = hide and not arg.startswith("-")
            out.append("<secret>" if hidden and self.patterns else self(arg))
            hide = _is_secret_flag(arg) or (arg == "-p" and before.endswith("sshpass"))
            before = arg
        return tuple(out)

    def learn(self, texts: Iterable[str], *, versions: Iterable[str] = ()) -> Redactor:
        """A redactor that numbers the addresses found in ``texts``, in order of appearance.

        Args:
            texts: everything that will be published together.
            versions: texts that are known to be versions, however much they look like addresses.
        """
        if not self.patterns:
            return self
        # A known version stands for itself.
        kept = tuple((text, text) for text in dict.fromkeys(versions) if _FOUR.fullmatch(text))
        found = addresses(texts, frozenset(text for text, _ in (*self.pairs, *kept)))
        known = sum(place.startswith("<ip-") for _, place in self.pairs)
        new = ((text, f"<ip-{known + n}>") for n, text in enumerate(found, start=1))
        return Redactor(pairs=(*self.pairs, *kept, *new), patterns=True)


_FOUR = re.compile(r"\d+(?:\.\d+){3}")


def secrets_of(
    *,
    argv: Sequence[str],
    model_flags: Sequence[str],
    env: Iterable[Pair],
    build_dir: str,
    out_dir: str,
    home: str,
    user: str,
    host: str,
) -> tuple[Pair, ...]:
    """The literal texts of one matrix that must not be published, as (text, placeholder).

    Args:
        argv: the user's whole command line.
        model_flags: what follows the first ``--`` in it.
        env: environment variables that reach a report, such as the delta of a run.
        build_dir: the engine's folder, absolute.
        out_dir: the run directory, absolute.
        home: the user's home, absolute.
        user: login name.
        host: the machine's name, short or full.
    """
    flags = (*argv, *model_flags)
    pairs = [
        *_folders(model_flags),
        *((path, place) for path, place in ((build_dir, "<build>"), (out_dir, "<out>"))),
        (home, "~"),
        *_secrets(flags, tuple(env)),
        *_user(user, flags),
        *_host(host, flags),
    ]
    usable = (
        (path.rstrip("/\\") if len(path) > 1 else path, place)
        for path, place in pairs
        if path.strip("/\\ .~")
    )
    kept: dict[str, str] = {}
    for text, place in usable:
        kept.setdefault(text, place)
    shown = (*flags, *(value for _, value in env))
    return Redactor(pairs=tuple(kept.items())).learn(shown).pairs


def _folders(model_flags: Sequence[str]) -> list[Pair]:
    """The folders of all files that the model flags name: ``<model>``, ``<model-2>`` and so on."""
    folders: dict[str, str] = {}
    before = ""
    for arg in model_flags:
        value = arg.partition("=")[2] if arg.startswith("-") else arg
        is_file = value.startswith(("/", "./", "../", "~/")) or (
            "/" in value and _FILE.search(value) is not None
        )
        if is_file and "://" not in value and before not in _PUBLIC_NAMES:
            folder = value.rstrip("/").rpartition("/")[0]
            if folder not in folders and folder.strip("./~"):
                number = len(folders) + 1
                folders[folder] = "<model>" if number == 1 else f"<model-{number}>"
        before = arg
    return list(folders.items())


def _is_secret_flag(arg: str) -> bool:
    return _SECRET_FLAG.fullmatch(arg) is not None


_SECRET_FLAG = re.compile(rf"--?(?:[\w-]*[-_])?(?i:{SECRET_WORD}|token|pwd|-hft)|-hft")
_CREDENTIALS = re.compile(r"://([^/\s:@]+):([^/\s@]+)@")
_SECRET_NAME = re.compile(r"(?i)(?:^|_)(?:token|secret|password|passwd|key|credentials?)$")


def _secrets(flags: Sequence[str], env: Sequence[Pair]) -> list[Pair]:
    """Keys given in flags or the environment, wherever else they may show up."""
    found: dict[str, None] = {}
    for flag, value in pairwise(flags):
        if _is_secret_flag(flag) and not value.startswith("-"):
            found[value] = None
    for arg in flags:
        name, _, value = arg.partition("=")
        if value and _is_secret_flag(name):
            found[value] = None
    for name, value in env:
        if _SECRET_NAME.search(name):
            found[value] = None
    for text in (*flags, *(value for _, value in env)):
        for user, password in _CREDENTIALS.findall(text):
            found[f"{user}:{password}"] = found[password] = None
    # A short one could be any word of the text; it is replaced beside its flag only.
    return [(value, "<secret>") for value in found if len(value) >= 6 and not _is_word(value, ())]


def _is_word(name: str, flags: Sequence[str]) -> bool:
    """Whether a name also says something else here, as a word or as a part of a flag."""
    parts = {part for flag in flags if flag.startswith("-") for part in re.split(r"[\W_]+", flag)}
    return len(name) < 3 or not name.strip("0123456789") or name.lower() in _WORDS or name in parts


def _user(user: str, flags: Sequence[str]) -> list[Pair]:
    if not user:
        return []
    telling = [(f"{user}@", "<user>@"), (f"/home/{user}", "/home/<user>")]
    return telling if _is_word(user, flags) else [*telling, (user, "<user>")]


def _host(host: str, flags: Sequence[str]) -> list[Pair]:
    pairs: list[Pair] = []
    short = host.partition(".")[0]
    for name in dict.fromkeys((host, short)):
        if name.lower() in {"", "localhost"}:
            continue
        for written in dict.fromkeys((name, name.lower(), name.upper())):
            pairs += [(f"@{written}", "@<host>"), (f"//{written}", "//<host>")]
            if not _is_word(name, flags):
                pairs.append((written, "<host>"))
    return pairs


@lru_cache(maxsize=16)
def _replacer(pairs: tuple[Pair, ...], patterns: bool) -> Callable[[str], str]:
    """One regular expression for everything; the longest text wins."""
    places = dict(pairs)
    longest = sorted(places, key=lambda text: (-len(text), text))
    parts = [rf"(?P<kept>{_PLACEHOLDER})"]
    if longest:
        parts.append(f"(?P<literal>{'|'.join(map(_literal, longest))})")
    if patterns:
        parts.append(PATTERNS)
    compiled = re.compile("|".join(parts), re.VERBOSE)

    def replace(match: re.Match[str]) -> str:
        found = match.lastgroup
        text = match.group()
        if found == "kept":
            return text
        if found == "literal":
            return places[text]
        return by_shape(match)

    # A report says most things many times.
    @lru_cache(maxsize=16_384)
    def redact(text: str) -> str:
        for _ in range(MOST_PASSES):
            text, before = compiled.sub(replace, text), text
            if text == before:
                break
        return text

    return redact


def _literal(text: str) -> str:
    """The expression of one text, with the boundaries that its kind needs."""
    left = right = ""
    if text.startswith(("/", "~/", "./", "../")):
        if text.count("/") == 1:
            # A short folder: not the "/s" of "tok/s", but the "-I/models" of a glued flag.
            left = r"(?:(?<![\w.~>])|(?<=[\s\"'=]-[A-Za-z]))"
        right = r"(?![\w-])(?!\.\w)"
    else:
        left = r"(?<![A-Za-z0-9_])" if text[0].isalnum() else ""
        right = r"(?![A-Za-z0-9_])" if text[-1].isalnum() else ""
    return left + re.escape(text) + right
