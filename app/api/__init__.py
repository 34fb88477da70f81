"""For machines: seven questions as JSON over HTTP beside the page (docs/api.md).

command    runcast mcp
door       the routes of app/server.py: reads requests, bounds them, answers with JSON
metrics    /metrics for Prometheus: searches, seconds, queue, cache, ages of prices, errors
mcp_tools  the questions as tools of a Model Context Protocol server
openapi    the OpenAPI description, from the models that parse requests
questions  plan, estimate, programme, audit, offers, models, gpus: keys in, documents of --json out
rate       how often one address may ask
"""
