"""Scenarios kept under a name.

as_json  saved scenarios as JSON: docs/saved-scenarios.md lists every key
command  runcast scenarios: list, save, show, rename and delete saved scenarios
saved    saved scenarios of one owner: save, list, open, rename, delete and restore
sidebar  saved scenarios in the sidebar: save, find, open, share, rename, delete, undo
words    saved scenarios in words: the lines of the list, on the page and on a terminal
"""
