"""From results of probes to a calibration: parsing, validity, fit."""
