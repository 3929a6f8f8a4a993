"""The arithmetic: a placement on a rig comes in, time and memory go out, one term a function.

Of an option's numbers the milliseconds are made here: `token` for decode, `prompt` for prefill,
`drafting` for what speculation makes of them; `memory` says whether it fits.
"""
