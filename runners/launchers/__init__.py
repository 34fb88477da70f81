"""Where a probe is run: one module a launcher, all with the methods of `launcher.Launcher`."""
