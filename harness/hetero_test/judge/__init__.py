"""A record comes in, a judgment goes out. Pure: any old record can be judged again.

No file, no clock, no process; knows no engine by name.
"""
