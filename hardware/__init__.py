"""Facts about machines: tables with sources, and their loaders."""
