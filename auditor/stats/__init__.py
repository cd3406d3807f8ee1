"""Arrays in, frozen results out. Imports nothing of ours, does no I/O, and never answers with NaN or an invented 0.

What cannot be computed is None, with `reason` saying why. A caller's mistake (shapes that do not fit, a rate above
1) is a ValueError. Randomness comes from a generator or a seed that is passed in.
"""
