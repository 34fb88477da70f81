"""What numbers and columns share: products of matrices on one thread."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from core.evidence import residual
from core.numeric import one_thread
from hardware.residuals.table import residuals


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


def test_products_have_one_thread_and_the_number_of_before_afterwards():
    with threadpool_limits(limits=2, user_api="blas"):
        assert set(one_thread(blas_threads)()) == {1}
        assert set(blas_threads()) == {2}


def test_measured_runs_are_compared_on_one_thread(monkeypatch):
    seen = []

    def products(a, b):
        seen.extend(blas_threads())
        return np.zeros((len(a), len(b)))

    monkeypatch.setattr(residual, "_squares", products)
    runs = residuals()
    with threadpool_limits(limits=2, user_api="blas"):
        residual.learned(runs.traits.take(np.arange(3)), runs)
    assert set(seen) == {1}
