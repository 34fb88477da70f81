"""Measured machines: the job that measures them, the results, and what they change.

added              adds, lists and removes calibration results: one file per result, and an
                   index in the store
as_json            calibrations as JSON: every key is documented in docs/calibration.md
calibrate_command  runcast calibrate: measure nodes where they are, and bring the result
                   back
calibrate_words    a calibration run in words and as JSON: its limits, progress and result
charts             the charts of the Calibrate page, from the tables of
                   app/calibration/document.py
command            runcast calibrations: measured results, added from a file, listed, shown,
                   removed
document           a calibration as tables: constants, links, flags, provenance, history
effect             what the calibrations of a scenario change: its plan and the best plan,
                   without and with them
job                the launcher, the job and the limits that follow from the options of
                   runcast calibrate
options            the options of a calibration run, each described once for the command line
                   and for saved runs
page               the Calibrate page: measured machines, and how they change the plan of
                   the link
plan               what a calibration measures: the matmuls of a link's plan, or of a usual
                   transformer block
result_section     one result on the Calibrate page: its constants, held-out step, links,
                   flags, provenance
sections           what runcast calibrations prints: the list of results, an added result, a
                   result in full
sources            where a forecast takes each rate of a machine from: measured here,
                   measured by others, assumed
words              calibrations in words: names of constants, what flags mean, stale
                   results, slow nodes; and the commands that measure
"""
