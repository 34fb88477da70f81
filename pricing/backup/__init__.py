"""Backups: everything that an installation keeps, in one archive, and its restore."""
