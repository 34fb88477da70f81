"""For machines: six questions as JSON over HTTP beside the page (docs/api.md).

door       the routes of app/server.py: reads requests, bounds them, answers with JSON
openapi    the OpenAPI description, from the models that parse requests
questions  plan, estimate, audit, offers, models, gpus: keys in, the document of --json out
rate       how often one address may ask
"""
