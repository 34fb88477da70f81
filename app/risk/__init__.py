"""What failures, checkpoints and restarts do to a plan.

as_json   a plan with failures as JSON: the keys that docs/risk.md documents
command   runcast risk: when the best plan ends and what it costs if machines fail
document  a plan with failures as blocks: spread, lost time, checkpoints and all inputs
risk      computes a plan with failures from the plan and its inputs
words     sentences about a plan with failures
"""
