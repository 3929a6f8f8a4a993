"""The command line: argument vectors come in, exit codes and text go out.

Translates only: below this room no function knows ``argparse``, prints or exits.
"""
