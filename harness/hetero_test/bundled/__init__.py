"""The bundled engine: a small, real mixture-of-experts model behind an engine command line.

It exists so that the harness can be shown, and tested, where there is neither a GPU nor
a model. It computes logits, drafts, verifies, accepts and rolls back; only the devices
are emulated: their memory is counted, not used, and what tells one from another is how
it rounds.

::

    build → a folder with ``strata``, ``strata-device`` and the model flags
    program → flags → checks → rig, pack → loader → model, drafter → decode → log

Every number that decides a token is computed from integers whose sums are exact in a
double, or by single IEEE operations. So no result depends on how many rows are computed
together, on the linear algebra library, its threads, or the machine.
"""
