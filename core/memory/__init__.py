"""Memory of one GPU, by part and by phase."""
