"""A run while it trains: what its steps say of its speed, its losses, its end, and what is wrong.

belief   the speed of a run: the forecast as prior, its steps as evidence
gaps     time between two logged steps that was not spent on training: what it was
level    a lasting change of speed, and a speed below the forecast for ten minutes
losses   a training loss that is not finite, jumps, or does not fall
moving   stay or move: from how many tokens on that are left a move pays
outlook  the end of a run, its cost and its chance on time, from what was seen so far
ranks    a rank that is slower than the others, or silent
reading  what is read of a run, what its plan forecast, and what is found
tracker  a run so far: its readings one by one, and everything found in them
"""
