"""A scenario as link, file, typed layout and config.json; which version made it."""
