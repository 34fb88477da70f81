"""What every command of the command line needs: options and typed values."""
