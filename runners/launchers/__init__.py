"""Launchers: one module for each place to run a probe, with the methods of `launcher.Launcher`.

follow      follow a run from its start to its result: submit, poll, fetch; each step is
            recorded first
job         one run of the probe, with its files, limits and id
kubernetes  a Job whose pods are the nodes, through the user's own kubectl
launcher    interface of launchers, and calls of external programs
local       local launcher: the probe in a session of its own, which outlives this process
nodes       nodes that run the verbs of on_node.py: this machine, or hosts behind ssh
on_node     supervisor on a node: starts, watches and ends the probe, with the standard
            library only
on_ray      the entrypoint of a Ray job on several nodes: one supervisor on each, in a
            placement group
quoting     checks of user input for commands: names, paths, hosts, variables
ray_jobs    launcher for Ray's job server, over HTTP and without Ray's package
skypilot    launcher for any cloud, through SkyPilot's sky with its own environment and
            credentials
slurm       launcher for SLURM, with sbatch, scontrol and scancel of this machine
slurm_software  software of a SLURM job: modules, a virtual environment, a container
ssh         launcher for hosts behind the user's own ssh and its configuration
"""
