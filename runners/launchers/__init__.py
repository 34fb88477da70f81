"""Where a probe is run: one module a launcher, all with the methods of `launcher.Launcher`.

follow      A run from its start to its result: submit, poll, bring back; each step written
            down first
job         one run of the probe: what is copied to a node, with which limits, under which
            id
kubernetes  kubernetes: a Job whose pods are the nodes, through the user's own kubectl
launcher    what every launcher does, and how a program of somebody else is called
local       the machine that Runcast runs on: the probe in a session of its own, which
            outlives us
nodes       nodes that answer commands: this machine, or hosts behind ssh
on_node     what runs on a node: starts the probe there, watches it, ends it; standard
            library only
on_ray      the entrypoint of a Ray job on several nodes: one supervisor on each, in a
            placement group
quoting     what a person typed, before it may become part of a command: names, paths,
            hosts, variables
ray_jobs    ray's job server over HTTP: nothing of Ray is needed here
skypilot    any cloud through SkyPilot's own sky, which has its own environment and the
            credentials
slurm       SLURM: our own batch script, sbatch, scontrol and scancel of the machine we are
            on
ssh         hosts behind the user's own ssh: its configuration, agent, certificates and jump
            hosts count

    follow      a run from its start to its result: submit, poll, bring back; each step written
                down first
    job         one run of the probe: what is copied to a node, with which limits, under which
                id
    kubernetes  kubernetes: a Job whose pods are the nodes, through the user's own kubectl
    launcher    what every launcher does, and how a program of somebody else is called
    local       the machine that Runcast runs on: the probe in a session of its own, which
                outlives us
    nodes       nodes that answer commands: this machine, or hosts behind ssh
    on_node     what runs on a node: starts the probe there, watches it, ends it; standard
                library only
    on_ray      the entrypoint of a Ray job on several nodes: one supervisor on each, in a
                placement group
    quoting     what a person typed, before it may become part of a command: names, paths,
                hosts, variables
    ray_jobs    ray's job server over HTTP: nothing of Ray is needed here
    skypilot    any cloud through SkyPilot's own sky, which has its own environment and the
                credentials
    slurm       SLURM: our own batch script, sbatch, scontrol and scancel of the machine we are
                on
    ssh         hosts behind the user's own ssh: its configuration, agent, certificates and jump
                hosts count
"""
