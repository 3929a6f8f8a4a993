"""The bundled engine: a small, real mixture-of-experts model behind an engine command line.

It exists so that the harness can be shown, and tested, without a GPU and without a model. It
computes logits, drafts, verifies, accepts and rolls back. Only the devices are emulated: their
memory is counted, not used, and one kind of device differs from another in how it rounds.

A command line, environment variables and files come in; a stream, a log and an exit code go out.
The engine runs as a process of its own, so no module here imports another part of the harness.

::

    build → a folder with ``strata``, ``strata-device`` and the model flags
    program → flags → job (rig, pack) → loader → model, drafter → decode → log

Every number that decides a token is computed from integers whose sums are exact in a
double, or by single IEEE operations. So no result depends on how many rows are computed
together, on the linear algebra library, its threads, or the machine.
"""
