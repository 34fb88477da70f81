"""For machines: seven questions as JSON over HTTP beside the page (docs/api.md)."""
