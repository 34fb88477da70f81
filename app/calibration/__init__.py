"""Measured machines: the job that measures, the results that are kept, what they change.

added              results of calibrations that are added, listed and removed: one file
                   each, and an index of them
as_json            calibrations as JSON: every key is documented in docs/calibration.md
calibrate_command  runcast calibrate: measure nodes where they are, and bring the result
                   back
calibrate_words    a calibration in words and as JSON: what it may take, how far it is,
                   what came back
charts             the charts of the Calibration page, of ready columns of
                   app/calibration/document.py
command            runcast calibrations: results that were measured, added from a file,
                   listed, shown, removed
command_line       the command that measures machines for a plan, to be copied
document           what a calibration says, as tables: constants, links, flags,
                   provenance, history
effect             what the calibrations of a scenario move: one plan, and the best one,
                   without and with them
job                what runcast calibrate was asked: which launcher, which job, what it
                   may take and cost
page               the Calibration page: measured machines, and what they move in the
                   plan of the link
plan               what a calibration measures: the matmuls of a link's plan, or of the
                   usual block
result_section     one result on the Calibration page: its constants, held-out step, links,
                   flags, provenance
sections           what runcast calibrations prints: the list of results, one that was
                   added, one in full
sources            where each rate of a machine comes from in a forecast: measured here, or
                   by others, or assumed
words              calibrations in words: what a constant is, what a flag means, what is
                   old, which node is slow
"""
