"""How a job is divided among GPUs: degrees, sharding, pipeline, precision, optimizer.

degrees     values that each degree of a layout may take: divisors of what it must divide
layouts     columns of candidate layouts, and the named rules that exclude one
optimizers  a table of the state that each keeps per trained parameter, and its extra work
packing     how far attention looks back where several documents share a sequence
pipeline    pipeline schedules: the bubble, the slowest stage, the micro-batches in flight
precision   number formats of training: the peak that matmuls run at, and the cost of
            quantising
routing     how unevenly a router loads the ranks that hold its experts
sharding    data-parallel strategies: a table of what each shards and gathers
workload    workload of a job, as columns: model, batch, number formats, and what the host
            keeps
"""
