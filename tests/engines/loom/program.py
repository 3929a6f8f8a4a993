"""The scripted program of the third engine: it says in events what its script holds, and ends.

``python program.py SCRIPT FLAGS``. The script is JSON: a list of ``[condition, facts]``. A
condition is a part of the command line, such as ``"--lane west"``; of a launch with ``--calm``, or
one that is shown one lane alone, these words stand in front. The facts of every rule that holds
are merged, later ones first.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def say(event: str, **facts: Any) -> None:
    """One event as a line of JSON."""
    print(json.dumps({"event": event, **facts}), flush=True)


def told() -> dict[str, Any]:
    """What the script says of this launch."""
    line = " ".join(sys.argv[2:])
    if "--calm" in sys.argv:
        line = f"calm {line}"
    if (only := os.environ.get("LOOM_ONLY")) is not None:
        line = f"only {only} {line}"
    found: dict[str, Any] = {"lane": "east", "wood": "oak", "seed": 1, "exit": 0}
    for condition, facts in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        if condition in line:
            found |= facts
    return found


def woven(facts: dict[str, Any], length: int) -> list[int]:
    """Even ids that do not repeat themselves; the one at the snag is odd."""
    seed, snag = facts["seed"], facts.get("snag")
    plain = [2 * ((seed * 7919 + n * n * 104729 + n) % 25009) for n in range(length)]
    return [token + 1 if n == snag else token for n, token in enumerate(plain)]


def main() -> int:
    """Say it."""
    facts = told()
    cloth = woven(facts, int(sys.argv[-1]))
    say("loom", build="7")
    say("laid", part="main", lane=facts["lane"], wood=facts["wood"])
    if facts.get("beams"):
        say("rows", beams=facts["beams"])
    for event in ("threads", "halved", "spools", "fray", "worthless"):
        if event in facts:
            say(event, value=facts[event])
    if "worth" in facts:
        best, second = facts["worth"], facts["worth"] - facts["close"]
        say("worth", tops=[[[token, best], [token ^ 1, second]] for token in cloth])
    if facts["exit"]:
        say("snapped", value=facts["exit"])
    else:
        say("cloth", ids=cloth)
    return int(facts["exit"])


if __name__ == "__main__":
    sys.exit(main())
