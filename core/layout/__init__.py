"""How a job is divided among GPUs: degrees, sharding, pipeline, precision, optimizer."""
