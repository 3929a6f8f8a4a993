"""What gives a secret away by its shape: keys, credentials, addresses, folders of people.

Shapes of keys are those that their issuers document (OpenAI, Hugging Face, GitHub, GitLab,
Slack, AWS, Google, NVIDIA, npm, PyPI, JSON Web Tokens and those beside their shapes below).
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SECRET_WORD = (
    r"(?:api|access|private|secret|auth|client)[-_]?(?:key|token|secret)"
    r"|(?:hf|hub|bearer|session|refresh|id)[-_]?token|secret|password|passwd|pass(?:phrase|code)"
    r"|(?:account|shared[-_]?access|master|signing|encryption)[-_]?key|credentials?"
)

_SHAPES = (
    r"sk-[A-Za-z0-9_-]{16,}"
    r"|hf_[A-Za-z0-9]{16,}"
    r"|gh[pousr]_[A-Za-z0-9]{16,}"
    r"|github_pat_[A-Za-z0-9_]{20,}"
    r"|gl(?:pat|dt|rt|ft|soat|cbt|imt|ptt|agent)-[A-Za-z0-9_-]{16,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|(?:A3T[A-Z0-9]|A(?:BI|CC|KI|SI)A)[0-9A-Z]{16}"
    r"|AIza[0-9A-Za-z_-]{35}|GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{16,}"  # Stripe
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"  # SendGrid
    r"|(?:AC|SK)[0-9a-f]{32}(?![0-9a-f])"  # Twilio
    r"|[0-9a-f]{32}-us[0-9]{1,2}\b|key-[0-9a-f]{32}\b"  # Mailchimp, Mailgun
    r"|[0-9]{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"  # Telegram
    r"|[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"  # Discord
    r"|sq0[a-z]{3}-[A-Za-z0-9_-]{20,}"  # Square
    r"|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"  # Shopify
    r"|do[opr]_v1_[0-9a-f]{32,}|dapi[0-9a-f]{32}"  # DigitalOcean, Databricks
    r"|dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}|AKC[A-Za-z0-9]{30,}"  # Docker, Artifactory
    r"|hv[bs]\.[A-Za-z0-9_-]{20,}|tskey-[a-z]+-[A-Za-z0-9-]{10,}"  # Vault, Tailscale
    r"|(?:gsk|r8|rpa|sbp|ntn|figd|glsa|glc|sntrys|sntryu|lin_api|secret)_[A-Za-z0-9_=-]{24,}"
    r"|(?:xai|pplx|PMAK|NRAK|pul)-[A-Za-z0-9-]{24,}"
    r"|(?:nvapi|npm|pypi)[-_][A-Za-z0-9_-]{20,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
)

_IP = r"""
  (?P<ip4>(?<![\w.])(?<![A-Za-z]-)\d{1,3}(?:\.\d{1,3}){3}(?!\w|-[A-Za-z]|\.\d))
| (?P<ip6>(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}
    (?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4})(?![\w:]))
"""

_NAME = r"""[^\s/\\<>"':;,|*?]+"""
_WINDOWS = r"(?:\\{1,4}|/)"
"""A backslash, as it is or escaped in JSON, once or twice."""

PATTERNS = rf"""
  (?P<key_block>-----BEGIN\ [A-Z\ ]{{0,30}}PRIVATE\ KEY(?:\ BLOCK)?-----[^-]*
    (?:-----END\ [A-Z\ ]{{0,30}}-----)?)
| (?P<windows>(?:\b[A-Za-z]:{_WINDOWS}|\\{{1,4}})(?:Users|Documents\ and\ Settings){_WINDOWS})
    (?P<windows_user>{_NAME}(?:\ {_NAME}){{1,3}}(?=[\\/])|{_NAME})
| (?P<home>/home/|/Users/|/media/) (?P<someone>{_NAME})
| (?P<tilde>(?<![\w/.~)\]])~) (?P<tilde_user>[A-Za-z_][\w.-]*)(?=/)
| (?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]{{0,30}}://) (?P<userinfo>[^\s/@<>"']+) @
| (?P<scheme_word>(?i:\bauthorization["']?\s*[:=]\s*["']?\w+\s+)) (?P<header>[^\s"'<>]+)
| (?P<cookie_word>(?i:\b(?:set-)?cookie)["']?\s*[:=]\s*["']?)
    (?P<cookie>[^\s"'<>;]+=[^\s"'<>;]+(?:;\s*[^\s"'<>;=]+(?:=[^\s"'<>;]*)?)*)
| (?P<sshpass>\bsshpass\s+(?:-v\s+)?-p\s*["']?) (?P<sshpass_value>[^\s"'<>]+)
| (?P<pwd_word>(?i:(?<![A-Za-z])pwd)["']?\s*[:=]\s*["']?) (?P<pwd>(?![/~.$])[^\s"'<>&,;]+)
| (?P<token_word>(?<![\w-])(?i:token)(?:=["']?|["']\s*:\s*["']))
    (?P<token>(?!\d+(?:\W|$))[^\s"'<>&,;]{{6,}})
| (?P<type_word>(?i:\b(?:bearer|basic)\ +)) (?P<bearer>(?=\S*[0-9=])[A-Za-z0-9._~+/=-]{{8,}})
| (?P<variable>\b[A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|CREDENTIALS?)
    \s*=\s*["']?) (?P<variable_value>(?!\d{{1,6}}\b)[^\s"'<>]+)
| (?P<flag>(?<![\w-])--?(?:[\w-]*[-_])?(?i:{SECRET_WORD}|token|pwd)(?:=|\ +)["']?)
    (?P<flag_value>(?!-)[^\s"'<>]+)
| (?P<field>(?i:(?<![A-Za-z])(?:{SECRET_WORD}))["']?\s*[:=]\s*["']?) (?P<field_value>[^\s"'<>&,;]+)
| (?P<query>[?&](?i:key|token|sig|signature|auth|code)=) (?P<query_value>[^\s"'<>&]+)
| (?P<shape>(?<![A-Za-z0-9_])(?:{_SHAPES}))
| (?P<mac>(?<![0-9A-Fa-f:.-])[0-9A-Fa-f]{{2}}(?:(?P<sep>[:-])[0-9A-Fa-f]{{2}})
    (?:(?P=sep)[0-9A-Fa-f]{{2}}){{4}}(?![0-9A-Fa-f:-]))
| (?P<mail>(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{{2,}}\b)
| (?P<login>(?<![\w.+@/-])[A-Za-z_][\w.+-]*@
    (?:(?!v?\d)(?![bqfs]\d+\b)[A-Za-z][\w-]*(?:\.[\w-]+)*|\d{{1,3}}(?:\.\d{{1,3}}){{3}}))(?![\w@])
| {_IP}
"""

_VERSION_BEFORE = re.compile(
    r"(?i)(?:\bv|version|release|driver|runtime|toolkit|library|firmware|v?bios|cuda|cudnn|cublas"
    r"|rocm|hip|vulkan|sycl|nccl|engine|build|gcc|clang|linux|kernel)[\s:=(\"']*$"
)
"""Words after which four numbers are a version, unless a port follows."""

_KEPT_BEFORE = {
    "someone": ("home", "<user>"),
    "windows_user": ("windows", "<user>"),
    "tilde_user": ("tilde", "<user>"),
    "cookie": ("cookie_word", "<secret>"),
    "sshpass_value": ("sshpass", "<secret>"),
    "pwd": ("pwd_word", "<secret>"),
    "token": ("token_word", "<secret>"),
    "header": ("scheme_word", "<secret>"),
    "bearer": ("type_word", "<secret>"),
    "variable_value": ("variable", "<secret>"),
    "flag_value": ("flag", "<secret>"),
    "field_value": ("field", "<secret>"),
    "query_value": ("query", "<secret>"),
}


def by_shape(match: re.Match[str]) -> str:
    """What stands in the place of something found by its shape."""
    groups = match.groupdict()
    for value, (before, place) in _KEPT_BEFORE.items():
        if groups[value] is not None:
            return f"{groups[before]}{place}"
    if groups["userinfo"] is not None:
        return f"{groups['scheme']}<credentials>@"
    if groups["shape"] is not None or groups["key_block"] is not None:
        return "<secret>"
    if groups["login"] is not None:
        return "<user>@<host>"
    if groups["mac"] is not None:
        return "<mac>"
    if groups["mail"] is not None:
        return "<mail>"
    return "<ip>" if _is_address(match) else match.group()


def _is_address(match: re.Match[str]) -> bool:
    """Whether digits and dots, or colons, are the address of a machine."""
    text = match.group()
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or text.startswith(("0.", "255.")):
        return False
    if address.version == 6:
        return True
    after = match.string[match.end() : match.end() + 2]
    has_port = after[:1] == ":" and after[1:].isdigit()
    before = match.string[max(0, match.start() - 24) : match.start()]
    return has_port or text.startswith("192.168.") or not _VERSION_BEFORE.search(before)


def addresses(texts: Iterable[str], known: frozenset[str]) -> tuple[str, ...]:
    """The distinct addresses that are not known yet, in order of appearance."""
    compiled = re.compile(_IP, re.VERBOSE)
    found: dict[str, None] = {}
    for text in dict.fromkeys(texts):
        if "." not in text and ":" not in text:
            continue
        for match in compiled.finditer(text):
            if match.group() not in known and _is_address(match):
                found[match.group()] = None
    return tuple(found)
