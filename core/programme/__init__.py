"""Programmes: runs that follow one another, from the first ablation to the last stage.

scaled      a smaller model of the same shape, for ablations
stage       one stage as a short text: what it trains and where it differs from the scenario
stage_link  stages as flat keys of a link: s2.seq_len=131072
tokens      tokens of each stage: its own, or a share of another; and the steps of its batch ramp
total       time and cost of all stages: mean, P10 to P90 of each boundary, chance of a deadline
"""
