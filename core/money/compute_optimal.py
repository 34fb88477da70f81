"""Compute-optimal training: the model size and tokens with the lowest loss for a budget.

L(N, D) = E + A / N^alpha + B / D^beta with N parameters and D tokens, and C = 6 N D FLOPs.
[H22] Hoffmann et al., "Training Compute-Optimal Large Language Models", arXiv:2203.15556: approach
      3 (section 3.3 and appendix D.3). The constants are those of its TeX source, which has more
      digits than its print (0.34 and 0.28 for the exponents move N at Chinchilla's compute by 20%);
      they are quoted in [B24].
[B24] Besiroglu et al., "Chinchilla Scaling: A replication attempt", arXiv:2404.10102: the same form
      fitted again on data read off the plots of [H22].

Validity: dense decoders of 70 million to 16 billion parameters on 5 to 500 billion tokens of one
data set; what is beyond is extrapolated, and other data have other constants. At 5.76e23 FLOPs,
which trained 70 billion parameters on 1.4 trillion tokens, [B24] finds 72 billion parameters and
[H22]'s own approach 3 finds 40 billion: 18 and 60 tokens a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.numeric import Numeric

FLOPS_PER_PARAMETER_AND_TOKEN = 6.0  # [H22, section 3.3]
CHINCHILLA_TOKENS_PER_PARAMETER = 20.0  # 1.4e12 / 70e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """One set of constants of the loss, with N in parameters and D in tokens."""

    name: str
    source: str
    e: float
    a: float
    b: float
    alpha: float
    beta: float


HOFFMANN = Law(
    name="Hoffmann et al. 2022, approach 3",
    source="arXiv:2203.15556, constants of its TeX source as quoted in arXiv:2404.10102",
    e=1.6934,
    a=406.4,
    b=410.7,
    alpha=0.3392,
    beta=0.2849,
)
BESIROGLU = Law(
    name="Besiroglu et al. 2024",
    source="arXiv:2404.10102, table 1",
    e=1.8172,
    a=482.01,
    b=2085.43,
    alpha=0.3478,
    beta=0.3658,
)
LAWS = (BESIROGLU, HOFFMANN)


def loss(law: Law, *, parameters: Numeric, tokens: Numeric) -> Numeric:
    """Cross-entropy in nats per token, on the data of the paper. [H22, equation 2]

    >>> round(loss(HOFFMANN, parameters=70e9, tokens=1.4e12), 2)
    1.92
    """
    return law.e + law.a / parameters**law.alpha + law.b / tokens**law.beta


def best_parameters(law: Law, *, flops: Numeric) -> Numeric:
    """N that makes the loss least at C FLOPs: G (C / 6)^(beta / (alpha + beta)) with
    G = (alpha A / (beta B))^(1 / (alpha + beta)). [H22, equation 4]

    >>> [f"{best_parameters(law, flops=5.76e23) / 1e9:.0f}B" for law in LAWS]
    ['72B', '40B']
    """
    both = law.alpha + law.beta
    g = (law.alpha * law.a / (law.beta * law.b)) ** (1 / both)
    return g * (flops / FLOPS_PER_PARAMETER_AND_TOKEN) ** (law.beta / both)


def best_tokens(law: Law, *, flops: Numeric) -> Numeric:
    """D that goes with `best_parameters`: C / 6 N.

    >>> [f"{best_tokens(law, flops=5.76e23) / 1e12:.2f}T" for law in LAWS]
    ['1.33T', '2.38T']
    """
    return flops / FLOPS_PER_PARAMETER_AND_TOKEN / best_parameters(law, flops=flops)


def training_flops(*, parameters: Numeric, tokens: Numeric) -> Numeric:
    """C = 6 N D. [H22, section 3.3]; without attention scores and recompute.

    >>> f"{training_flops(parameters=70e9, tokens=1.4e12):.3g}"
    '5.88e+23'
    """
    return FLOPS_PER_PARAMETER_AND_TOKEN * parameters * tokens


def flops_per_usd(*, parameters: Numeric, tokens: Numeric, usd: Numeric) -> Numeric:
    """FLOPs per dollar of a run of known cost, counted as 6 N D.

    >>> flops_per_usd(parameters=1e9, tokens=1e9, usd=6.0)
    1e+18
    """
    return training_flops(parameters=parameters, tokens=tokens) / usd


def usd_at_tokens_per_parameter(
    *, parameters: Numeric, tokens_per_parameter: Numeric, flops_per_usd: Numeric
) -> Numeric:
    """Dollars to train N parameters on so many tokens each, at this compute a dollar.

    >>> usd_at_tokens_per_parameter(parameters=1e9, tokens_per_parameter=20.0, flops_per_usd=1e18)
    120.0
    """
    tokens = tokens_per_parameter * parameters
    return training_flops(parameters=parameters, tokens=tokens) / flops_per_usd
