"""What failures, checkpoints and restarts do to a plan.

as_json   a plan with failures as JSON: the keys that docs/risk.md documents
command   runcast risk: when the best plan ends and what it costs if machines fail
document  a plan with failures as blocks: time and cost, lost time, checkpoints, all inputs
risk      what failures do to a plan: checkpoint intervals, other failure rates, bursts
words     sentences about a plan with failures
"""
