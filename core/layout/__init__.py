"""How a job is divided among GPUs: degrees, sharding, pipeline, precision, optimizer.

degrees     the values that each degree of a layout may take: divisors of what it must
            divide
layouts     columns of candidate layouts, and the named constraints that say why one is out
optimizers  optimizers: a table of the state each keeps per trained parameter, and its extra
            work
pipeline    pipeline schedules: the bubble, the slowest stage, the micro-batches in flight
precision   number formats of training: which peak the matmuls run at, and what they pay for
            it
sharding    data-parallel strategies: a table of what each shards and what it gathers
workload    what is trained, as columns: the model, the batch, the recipe of numbers, the
            host's share
"""
