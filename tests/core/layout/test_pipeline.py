"""Pipeline schedules: the closed forms against an event simulation, [N21]."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.layout.layouts import SCHEDULES
from core.layout.pipeline import (
    bubble_fraction,
    layers_of_largest_stage,
    microbatches_in_flight,
    microbatches_on_last_stage,
)
from tests.support.simulation import run_pipeline, run_zero_bubble


@pytest.mark.parametrize("pp", [1, 2, 4, 8])
@pytest.mark.parametrize("virtual_stages", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2, 4, 5])
def test_uniform_stages_take_ideal_time_plus_the_bubble_and_hold_the_schedule_s_microbatches(
    pp, virtual_stages, groups
):
    if pp == 1 and virtual_stages > 1:
        return
    m = groups * pp
    run = run_pipeline(
        forward_s=[1.0] * pp,
        backward_s=[2.0] * pp,
        virtual_stages=virtual_stages,
        num_microbatches=m,
    )
    given = {"pp": float(pp), "virtual_stages": float(virtual_stages), "num_microbatches": float(m)}
    assert run.seconds == pytest.approx(3.0 * m * (1 + float(bubble_fraction(**given))))
    if groups > 1:
        assert float(microbatches_in_flight(**given)) == pytest.approx(run.most_in_flight[0])
        assert max(run.most_in_flight) == run.most_in_flight[0]


def closed_forms(kind, *, pp, m):
    """(bubble, micro-batches in flight on the first and on the last stage) of a schedule."""
    given = {"pp": float(pp), "virtual_stages": 1.0, "num_microbatches": float(m),
             "schedule": float(SCHEDULES.index(kind))}  # fmt: skip
    return [
        float(of(**given))
        for of in (bubble_fraction, microbatches_in_flight, microbatches_on_last_stage)
    ]


@pytest.mark.parametrize("kind", ["naive", "gpipe", "1f1b"])
@given(pp=st.integers(1, 12), m=st.integers(1, 40))
def test_every_schedule_takes_and_holds_what_its_simulation_does(kind, pp, m):
    run = run_pipeline(
        forward_s=[1.0] * pp, backward_s=[2.0] * pp, virtual_stages=1, num_microbatches=m, kind=kind
    )
    bubble, first, last = closed_forms(kind, pp=pp, m=m)
    assert run.seconds == pytest.approx(3.0 * m * (1 + bubble))
    assert first == run.most_in_flight[0] == max(run.most_in_flight)
    assert last == run.most_in_flight[-1]


def test_naive_model_parallelism_keeps_one_of_p_devices_busy():
    assert closed_forms("naive", pp=8, m=64) == [7.0, 1.0, 1.0]


def test_gpipe_idles_like_1f1b_and_holds_every_microbatch():
    gpipe, plain = (closed_forms(k, pp=8, m=64) for k in ("gpipe", "1f1b"))
    assert gpipe[0] == plain[0]
    assert (gpipe[1], plain[1]) == (64, 8)


@pytest.mark.parametrize("pp", [2, 4, 8])
def test_zero_bubble_idles_a_third_of_1f1b_and_holds_no_more(pp):
    """[Q23, table 1]: (p - 1)(F + B - W) against (p - 1)(F + B + W), memory p of both."""
    run = run_zero_bubble(
        pp=pp, num_microbatches=pp, forward=1, backward_input=1, backward_weight=1
    )
    zero, first, _ = closed_forms("zero_bubble", pp=pp, m=pp)
    plain, held, _ = closed_forms("1f1b", pp=pp, m=pp)
    assert run.seconds == 3 * pp * (1 + zero)
    assert zero == pytest.approx(plain / 3)
    assert first == held == max(run.most_in_flight)


@pytest.mark.parametrize("groups", [2, 4, 8])
def test_zero_bubble_stays_near_its_closed_form_over_many_microbatches(groups):
    """The greedy simulation may miss the best order by two ticks; 1F1B would be 21 over."""
    run = run_zero_bubble(
        pp=8, num_microbatches=8 * groups, forward=1, backward_input=1, backward_weight=1
    )
    idle = run.seconds - 3 * 8 * groups
    assert 7 <= idle <= 9


@pytest.mark.parametrize(("forward", "backward_input", "backward_weight"), [(2, 3, 1), (2, 4, 1)])
def test_short_weight_gradients_fill_little_of_the_bubble(forward, backward_input, backward_weight):
    """Attention and recompute lengthen F and B, not W: idle is (p - 1)(F + B - W) [Q23]."""
    times = {"forward": forward, "backward_input": backward_input,
             "backward_weight": backward_weight}  # fmt: skip
    run = run_zero_bubble(pp=4, num_microbatches=16, **times)
    idle = run.seconds - 16 * sum(times.values())
    assert idle == 3 * (forward + backward_input - backward_weight)
    assert idle > sum(times.values())  # far more than a third of 1F1B's


@pytest.mark.parametrize("times", [(1, 1, 1), (2, 3, 1), (3, 4, 1)])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 6])
def test_few_microbatches_leave_zero_bubble_some(times, m):
    """With fewer micro-batches than stages there are fewer weight gradients to fill it with."""
    forward, backward_input, backward_weight = times
    run = run_zero_bubble(
        pp=8, num_microbatches=m, forward=forward, backward_input=backward_input,
        backward_weight=backward_weight,
    )  # fmt: skip
    whole = sum(times)
    fraction = bubble_fraction(
        pp=8.0, virtual_stages=1.0, num_microbatches=float(m), schedule=4.0,
        weight_gradient_share=backward_weight / whole,
    )  # fmt: skip
    assert run.seconds == pytest.approx(m * whole * (1 + float(fraction)))


@pytest.mark.parametrize("num_microbatches", [56, 57, 58, 59, 60])
def test_the_published_12_percent_of_8_stages_becomes_6_with_2_virtual_stages(num_microbatches):
    """Guides print 12% -> 6% without the micro-batches: (p - 1)/m = 0.12 implies 56 to 60."""
    fractions = [
        float(bubble_fraction(pp=8.0, virtual_stages=v, num_microbatches=float(num_microbatches)))
        for v in (1.0, 2.0)
    ]
    assert fractions == pytest.approx([0.12, 0.06], abs=0.006)
    assert fractions[0] == 2 * fractions[1]


def test_uneven_layers():
    """126 layers of Llama 405B on 8 stages: 16 on the fullest; never more than there are."""
    assert float(layers_of_largest_stage(num_layers=126.0, pp=8.0)) == 16
    assert float(layers_of_largest_stage(num_layers=80.0, pp=8.0)) == 10
    assert float(layers_of_largest_stage(num_layers=3.0, pp=8.0)) == 1


@given(layers=st.integers(1, 2048), pp=st.integers(1, 128))
def test_the_stages_hold_all_layers(layers, pp):
    largest = float(layers_of_largest_stage(num_layers=float(layers), pp=float(pp)))
    assert largest * pp >= layers
    assert (largest - 1) * pp < layers
