"""Running a server: checks of the installation, backup and restore."""
