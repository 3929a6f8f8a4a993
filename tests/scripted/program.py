"""A scripted ``strata``: prints what a scenario says, in the engine's own format.

Stands alone (standard library only, started without site) so that a launch takes a few
hundredths of a second. Its behavior is in ``scenario.json`` beside it: a list of rules, each
with ``when`` (flags that must be there, flags that must not, which of the launches that match)
and ``do`` (see :data:`DEFAULTS`); later rules rule over earlier ones.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

DEFAULTS: dict[str, Any] = {
    "cards": ["NVIDIA GeForce GTX 1080 Ti", "NVIDIA GeForce GTX 1080 Ti"],
    "slots": 4400,  # automatic cache with the drafter on the main card
    "slots_apart": 5011,  # with the drafter elsewhere
    "moves": True,  # whether --main-device moves the main model
    "native": False,  # a native pack: a forced N is a budget of largest blobs
    "estimate": None,  # slots of the auto line; the final count if None
    "budget": 1.0,  # final slots of a native pack per slot of its budget
    "clip": None,  # most slots that can be opened
    "refuse_size": False,  # exit 1 instead of clipping, as a canonical pack does
    "final_line": True,
    "gpu_line": True,
    "role_lines": True,
    "workspace_line": True,
    "resident_line": True,
    "main": None,  # where the main model really is
    "ids": None,  # the stream; else made from card and slots
    "noise": False,  # a stream of its own in each launch
    "flip": None,  # index of one id that is another one
    "length": None,  # how many ids are dumped
    "fill": None,  # ids that fill the last half, over and over
    "dumps": 1,
    "wrap": None,  # index at which the dump goes on on a new line
    "foreign": None,  # text put into the middle of the dump
    "count_line": None,  # a line such as "output: 60" before the dump
    "dump_on": "stdout",
    "echo": "same",  # same, other, none
    "greedy": True,
    "accepted": 38,
    "offered": 62,
    "swaps": None,
    "pcie": None,
    "stdout": [],
    "stderr": [],
    "late": [],  # stderr lines after the session is up
    "ends": "after",  # before or after the dump, for exit, signal and hang
    "exit": 0,
    "signal": None,
    "hang": 0.0,
    "deaf": False,  # ignores INT and TERM
    "child": 0.0,  # leaves a child in its own session, alive for that long
    "child_deaf": True,  # which ignores INT and TERM
    "talk": 0,  # bytes of noise on stderr
    "decode_ms": 2000.0,
    "decoded": None,  # tokens that the decode line counts; all of them if None
    "refuses": [],  # flags that are unknown arguments
}
HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    """Look up the scenario and play it."""
    argv = sys.argv[1:]
    with open(os.path.join(HERE, "scenario.json"), encoding="utf-8") as file:
        scenario = json.load(file)
    if "--help" in argv:
        sys.stderr.write("usage: strata [options]\n")
        for flag in scenario["help"]:
            sys.stderr.write(f"  {flag} X   an option\n")
        return
    with open(os.path.join(HERE, "argv.log"), "a", encoding="utf-8") as file:
        file.write(json.dumps(argv) + "\n")
    do = dict(DEFAULTS)
    for number, rule in enumerate(scenario["rules"]):
        if matches(rule.get("when", {}), argv, number):
            do.update(rule["do"])
    Play(do, argv).run()


def matches(when: dict[str, Any], argv: list[str], number: int) -> bool:
    """Whether a rule holds for this launch; counts the launches for which its flags do."""
    if not all(has(argv, flag) for flag in when.get("flags", [])):
        return False
    if any(has(argv, flag) for flag in when.get("without", [])):
        return False
    if not all(os.environ.get(k) == v for k, v in when.get("env", {}).items()):
        return False
    if "nth" not in when:
        return True
    with open(os.path.join(HERE, f"count-{number}"), "a+", encoding="utf-8") as file:
        file.write(".")
        file.flush()
        count = file.tell()
    return count in when["nth"]


def has(argv: list[str], flag: str) -> bool:
    """A flag, or a flag with its value after a blank."""
    words = flag.split(" ")
    return any(argv[i : i + len(words)] == words for i in range(len(argv)))


def value(argv: list[str], flag: str) -> str | None:
    """The last value of a flag."""
    found = None
    for i in range(len(argv) - 1):
        if argv[i] == flag:
            found = argv[i + 1]
    return found


class Play:
    """One launch."""

    def __init__(self, do: dict[str, Any], argv: list[str]) -> None:
        self.do = do
        self.argv = argv
        mask = os.environ.get("CUDA_VISIBLE_DEVICES")
        cards = do["cards"]
        self.cards = cards if mask is None else [cards[int(n)] for n in mask.split(",")]

    def err(self, text: str) -> None:
        os.write(2, (text + "\n").encode())

    def run(self) -> None:
        do, argv = self.do, self.argv
        for flag in do["refuses"]:
            if flag in argv:
                self.err(f"unknown argument: {flag}")
                sys.exit(2)
        if do["deaf"]:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if do["child"]:
            self.leave_child()
        self.load()
        if do["ends"] == "before":
            self.end()
        self.dump()
        self.end()

    def leave_child(self) -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            if self.do["child_deaf"]:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(self.do["child"])
            os._exit(0)

    def roles(self) -> tuple[int, int, bool]:
        main, draft = value(self.argv, "--main-device"), value(self.argv, "--draft-device")
        if "--auto-roles" in self.argv:
            return 0, 1, True
        if main is None and draft is None:
            return 0, 0, False
        return int(main or 0), int(draft or 0), True

    def load(self) -> None:
        do = self.do
        main, draft, roles = self.roles()
        real = do["main"] if do["main"] is not None else (main if do["moves"] else 0)
        self.card = self.cards[real]
        if roles and do["role_lines"]:
            if "--auto-roles" in self.argv:
                self.err(
                    "strata generate: --auto-roles picked: MAIN 0 (the engine's default ordinal), "
                    f"DRAFT 1 ({self.cards[1]}, 10897 MiB free)"
                )
            for number, card in enumerate(self.cards):
                self.err(
                    f"strata generate: role device {number}: {card}, cc 6.1, dp4a yes, "
                    "free VRAM 10897 MiB"
                )
            self.err(
                f"strata generate: device roles: main {main}, draft {draft} (two GPUs; the drafter "
                "and its own K/V load on the draft device)"
            )
        if do["pcie"] is not None:
            self.err(
                f"strata generate: PCIe probe: 12.3 GB/s host->device -> pcie_frac {do['pcie']} "
                "(default 0.55)"
            )
        if do["native"]:
            self.err(
                "strata generate: native pack: PACK experts (largest blob 2.66 MB), token "
                "embedding IQ4_XS in mapped host memory (322 MiB)"
            )
        if roles and draft != real and do["workspace_line"]:
            self.err(
                "strata mtp: the draft layer's gr workspace runs on the draft device (0.3 MiB)"
            )
        if do["gpu_line"]:
            self.err(f"strata generate: GPU {real}: {self.card}, compute capability 6.1")
        for line in do["stderr"]:
            self.err(line)
        self.slots = self.cache(apart=roles and draft != real)
        self.err("strata generate: session is up (engine 0.1.34)")
        sampling = "greedy" if do["greedy"] else "temperature=1 top_k=20 top_p=0.95 seed=1"
        self.err(f"strata generate: sampling {sampling}")
        for line in do["late"]:
            self.err(line)
        if do["talk"]:
            block = b"noise " * 1000 + b"\n"
            left = do["talk"]
            while left > 0:
                left -= os.write(2, block)

    def cache(self, *, apart: bool) -> int:
        do = self.do
        forced = value(self.argv, "--expert-cache")
        slots: int = do["slots_apart"] if apart else do["slots"]
        if forced in (None, "auto", "0"):
            shown = slots if do["estimate"] is None else do["estimate"]
            self.err(
                "strata generate: expert cache auto: 8.67 GiB free, 700 MiB reserved "
                f"(+281 MiB for the draft head) -> {shown} slots"
            )
        else:
            slots = int(int(forced) * do["budget"]) if do["native"] else int(forced)
        if do["clip"] is not None and slots > do["clip"]:
            if do["refuse_size"] and forced not in (None, "auto", "0"):
                self.err(
                    f"strata generate: ExpertCache: {slots} slots x 1382400 B = 6.45 GiB, but only "
                    "5.90 GiB of VRAM is free (card). Lower --expert-cache."
                )
                sys.exit(1)
            slots = do["clip"]
        if do["final_line"]:
            self.err(f"strata generate: expert cache {slots} slots, 5.66 GiB of VRAM; policy is")
        if do["resident_line"]:
            self.err(
                f"strata generate: token graph hit path: {slots} resident experts, decided on the "
                "device"
            )
        return slots

    def stream(self, count: int) -> list[int]:
        do = self.do
        if do["ids"] is not None:
            ids = list(do["ids"])
        else:
            state = sum(self.card.encode()) * 7919 + self.slots
            if do["noise"]:
                state += os.getpid() + time.time_ns()
            ids = []
            for _ in range(count):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                ids.append(1000 + (state >> 33) % 100000)
        if do["fill"]:
            start = len(ids) // 2
            ids[start:] = [do["fill"][i % len(do["fill"])] for i in range(len(ids) - start)]
        if do["flip"] is not None:
            ids[do["flip"]] += 1
        if do["length"] is not None:
            ids = (ids * 3)[: do["length"]]
        return ids

    def dump(self) -> None:
        do = self.do
        count = int(value(self.argv, "--max-new") or 16)
        with open(value(self.argv, "--tokens-file") or "", encoding="utf-8") as file:
            prompt = file.read().split()
        if do["echo"] == "other":
            prompt[0] = str(int(prompt[0]) + 1)
        ids = [str(token) for token in self.stream(count)]
        accepted, offered = do["accepted"], do["offered"]
        out = [
            f"{'speculation':<24} 22 rounds of 6, drafts accepted {accepted} of {offered} "
            f"({accepted / offered:.3f}), 2.73 tokens per round",
            f"{'suffix drafts':<24} 0 windows, drafts accepted 0 of 0",
        ]
        if do["swaps"] is not None:
            out.append(
                f"{'adaptive tier':<24} {do['swaps']} experts swapped into the VRAM tier (every 4 "
                "rounds, 0.412 ms/round)"
            )
        out.append(
            f"{'mtp':<24} 4.420 ms/round drafting (22 rounds), MTP prompt 12.3 ms, 870 MiB of VRAM"
        )
        out += do["stdout"]
        if do["count_line"]:
            out.append(do["count_line"])
        if do["echo"] != "none":
            out.append(" ".join(["prompt  :", *prompt]))
        line = " ".join(["output  :", *ids])
        if do["wrap"] is not None:
            line = " ".join(["output  :", *ids[: do["wrap"]]]) + "\n" + " ".join(ids[do["wrap"] :])
        if do["foreign"] is not None:
            half = len(ids) // 2
            line = " ".join(["output  :", *ids[:half]]) + do["foreign"] + " ".join(ids[half:])
        dumps = [line] * do["dumps"]
        if do["dump_on"] == "stderr":
            self.err("\n".join(dumps))
            dumps = []
        out += dumps
        count = count if do["decoded"] is None else do["decoded"]
        out.append(
            f"{'decode':<24} {count} tokens in {do['decode_ms']:.1f} ms  ->  "
            f"{count / do['decode_ms'] * 1000:.2f} tok/s"
        )
        out.append(
            f"{'prefill':<24} {len(prompt) - 1} tokens in 5301.2 ms  ->  17.73 tok/s  (time to "
            "first token 6120.5 ms)"
        )
        os.write(1, ("\n".join(out) + "\n").encode())

    def end(self) -> None:
        do = self.do
        if do["hang"]:
            until = time.monotonic() + do["hang"]
            while time.monotonic() < until:
                time.sleep(0.05)
        if do["signal"]:
            signal.signal(getattr(signal, do["signal"]), signal.SIG_DFL)
            os.kill(os.getpid(), getattr(signal, do["signal"]))
            time.sleep(10)
        sys.exit(do["exit"])


if __name__ == "__main__":
    main()
