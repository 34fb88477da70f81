"""What other tools measured: their output read, judged and put beside the forecast."""
