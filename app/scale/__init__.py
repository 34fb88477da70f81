"""How many GPUs: time and cost at each count, and whether to wait.

as_json   when and how big as JSON: the keys that docs/scale.md documents
charts    the charts of when and how big: time and cost against the number of GPUs, and the
          best model for a budget
command   runcast scale: when a run ends and what it costs at other numbers of GPUs
document  when and how big as tables: numbers of GPUs, and compute-optimal models
optimal   compute-optimal models: the lowest loss for a budget on the machines of a plan
page      when and how big: a section of the page about prices and risk
points    time and cost of one machine against its number of GPUs, and the value of waiting
waiting   whether waiting for a lower price pays, from the price trend of a plan's
          accelerator
words     sentences about when and how big
"""
