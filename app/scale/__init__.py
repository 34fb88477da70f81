"""How many GPUs: time and cost at each count, and whether to wait.

as_json   when and how big as JSON: the keys that docs/scale.md documents
charts    the charts of when and how big: time and cost against the number of GPUs, and what
          a budget trains best
command   runcast scale: when a run ends and what it costs at other numbers of GPUs
document  when and how big described once: numbers of GPUs and compute-optimal models as
          tables
optimal   what a budget trains to the lowest loss at the machines of a plan: compute-optimal
          models
page      when and how big: a section of the page about prices and risk
points    when and how big: cost and finish of one machine against its number of GPUs,
          steady and with failures, and what it would be worth to wait
waiting   whether waiting for a lower price pays: the trend of an accelerator's price beside
          a plan
words     when and how big in sentences
"""
