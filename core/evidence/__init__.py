"""What measured runs and published claims say of the forecast, and of each other.

accuracy          how far forecasts are from measurements: the error metrics of runcast
                  validate
anchor            a measurement that the user made rescales the forecast and narrows its
                  interval
baseline          what a forecast must beat: the median utilisation of runs like this one
claimed_speed     what a claim about a run implies, and what physics, published runs and a
                  forecast say of it
coverage          does an interval hold what it promises? Exact binomial bounds of a
                  coverage
fitting           fit a few bounded parameters to measured runs: robust, with priors,
                  deterministic
inference         what a published run does not say, inferred from physics: the least that
                  fits the memory
neighbours        which measured runs are most like a plan: a distance over what differs
published_claims  arithmetic behind claims that others print, and the verdict on them
uncertainty       how sure a forecast is: a log-normal around the P50 whose width grows with
                  what is assumed
"""
