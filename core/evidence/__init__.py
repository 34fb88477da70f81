"""Measured runs and published claims, compared with the forecast and with each other.

accuracy          error metrics of runcast validate: how far forecasts are from
                  measurements
baseline          baseline that a forecast must beat: the median utilisation of similar
                  published runs
choice            choosing by forecast: regret, how far the chosen falls short, and the correction
                  for it
claimed_speed     claimed speed of a run: its utilisation, and the verdict from peaks,
                  records and a forecast
coverage          coverage of forecast intervals: exact binomial bounds, and the verdict
fitting           robust, deterministic fit of a few bounded parameters to measured runs,
                  with priors
inference         what a published run leaves out, inferred from its memory: the least
                  that fits
measured_runs     runs as measured, with the traits that forecasts are compared with them
                  by
own_runs          what runs that a user measured say about what the same user forecasts
published_claims  arithmetic behind published claims, and the verdict on each
residual          what measured runs say about the error of the model at runs like them
traits            traits of jobs, by which residual finds the measured runs like them
uncertainty       width of a forecast: a log-normal around the P50 that widens with what
                  is assumed
"""
