"""Launchers: one module for each place to run a probe, with the methods of `launcher.Launcher`."""
