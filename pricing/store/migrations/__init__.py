"""Migrations of the tables: one file per step, never edited after its release."""
