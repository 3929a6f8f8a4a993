"""What a command line of any engine says of placement."""

from __future__ import annotations

from hetero_test.engines.llama_cpp.placement_flags import parse_text
from hetero_test.triage.options.from_flags import placement_flags


def test_stratas_devices_say_what_those_of_llama_cpp_say() -> None:
    """The main model's device and the drafter's, with a blank or an equals sign."""
    expected = parse_text("-dev 0 -devd 1")
    assert expected.says_something
    assert placement_flags(["--main-device", "0", "--draft-device", "1"]) == expected
    assert placement_flags(["--main-device=0", "--draft-device=1"]) == expected


def test_flags_of_llama_cpp_are_read_as_they_stand() -> None:
    """An equals sign inside a value is part of the value."""
    flags = ["-ngl", "99", "-ot", "exps=CPU"]
    assert placement_flags(flags) == parse_text("-ngl 99 -ot exps=CPU")
