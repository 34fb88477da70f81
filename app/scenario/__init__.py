"""A scenario as link, file, typed layout and config.json; which version made it.

age         which version made a link, and which of its numbers have changed since
fields      what the fields of core.scenario.Scenario say about their widgets: kind,
            choices, bounds
file        a scenario as a YAML file: --scenario FILE.yaml, --save FILE.yaml, and the
            page's files
layout      a layout as people write it:
            tp=8,pp=4,dp_shard=16,sharding=zero1,micro_batch_size=1
link        read a link as a scenario, and write a scenario as an address to copy
link_query  the query of a link that reopens an answer
model       the way in for models: text or a file of a config.json, and the model fields of
            a scenario
starting    where a scenario starts: the usual batch, sequence, data and machines of each
            task, and examples
version     which Runcast this is: its version, its commit in a checkout, hashes of its
            tables and code
yaml        a table in a user's YAML file, read as a stream of checked events
"""
