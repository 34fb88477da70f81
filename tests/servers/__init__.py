"""Real servers that tests start: SLURM, sshd, Ray, PostgreSQL, nginx, a login provider."""
