"""What failures, checkpoints and restarts do to a plan.

as_json   a plan with failures as JSON: the keys that docs/risk.md documents
command   runcast risk: when the best plan ends and what it costs if machines fail
document  a plan with failures described once: spread, lost time, checkpoints, and what all
          rests on
risk      a plan with failures: its job from a plan and the inputs, and what core makes of
          it
words     a plan with failures in sentences
"""
