"""The estimate: pure functions of numbers and numpy columns. No files, network, clock or UI."""
