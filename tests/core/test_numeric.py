"""What numbers and columns share: products of matrices on one thread."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from core.evidence import residual
from core.numeric import kept_for_last, one_thread
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


def test_the_last_answer_is_kept_for_the_very_arguments_alone():
    asked = []

    @kept_for_last
    def ratio(a, b=2.0, *, of=1.0):
        asked.append((a, b, of))
        return a * b / of

    one, two = np.array([1.0]), np.array([4.0])
    assert [float(ratio(one, two)[0]) for _ in range(2)] == [4.0, 4.0]
    assert len(asked) == 1
    assert float(ratio(one.copy(), two)[0]) == 4.0  # equal, but another object
    assert len(asked) == 2
    # Fewer arguments, or the same objects by other names, are another question.
    assert float(ratio(one)[0]) == 2.0
    assert float(ratio(one, b=two)[0]) == 4.0
    assert float(ratio(one, of=two)[0]) == 0.5
    assert len(asked) == 5
