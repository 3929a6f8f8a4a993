"""The command line: argument vectors come in, exit codes and text go out.

Translates only: words become frozen options here, and below this room no step of the road knows
``argparse``, prints or exits.
"""
