"""Published runs as input columns of the estimator, from their settings, never their measurements.

columns   many runs as columns: efficiencies, and what only the memory can settle
features  the features of the software of a published run: as its row says, else the habit
          of its stack
layout    the layouts that a published run may have, and the least that fits in memory
words     translate the words of published runs to ours: precisions, strategies, networks,
          offloading
written   one published run as it is written: what no efficiency changes
"""
