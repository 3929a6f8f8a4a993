"""How thoroughly properties are tried; no example has a deadline, since no test is timed.

``HYPOTHESIS_PROFILE`` names a profile: ``quick`` while working, ``ci``, ``nightly``.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("quick", deadline=None, max_examples=100)
# A gate answers the same for the same code; the nightly profile looks further.
settings.register_profile("ci", deadline=None, max_examples=500, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=10_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# A shell that starts this in the background has it ignore the signals that some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
