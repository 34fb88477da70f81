"""What a person sees: the page in the browser and the command line. No formula lives here."""
