"""The fit of the shipped fractions: blind folds, from the priors on, written as fitted."""

import csv
import datetime as dt
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.accuracy import fit as accuracy_fit
from app.accuracy import fit_columns, fit_intervals, fit_kernels, fit_left_out, fit_values
from app.accuracy.fit_columns import folds, samples
from app.accuracy.predict import circumstances_of, predict
from core.evidence import uncertainty
from core.machine.efficiency import NAMES
from core.numeric import Z_90
from hardware.efficiency import GENERIC, profiles, read_entries
from hardware.measured import (
    MODELS_CSV,
    RUNS_CSV,
    RunInputs,
    RunMeasurements,
    read_models,
    read_runs,
)

TODAY = dt.date(2026, 11, 21)
TABLE = read_entries()
KIND = pytest.mark.parametrize("kind", ["memory", "throughput"])
# Key of a fold and how many there are.
SPLITS = (("group", fit_left_out.GROUPED), ("publication", fit_left_out.NEW_SOURCE))
PRINTED = ("tokens_per_s_per_gpu", "peak_mem_gib", "value", "model_tflops_per_gpu", "mfu_printed")


@pytest.fixture(scope="module")
def priors():
    return [fit_values.at_prior(e) for e in TABLE]


@pytest.fixture(scope="module")
def of(priors):
    throughput, memory = samples(profiles(priors))
    return {"throughput": throughput, "memory": memory}


@pytest.fixture(scope="module")
def fit_of(of, priors):
    """The fit to all rows of each kind."""
    return {kind: fit_values.fit_of(sample, priors, kind) for kind, sample in of.items()}


def table_of(entries, kind, sample, found):
    """What the fit would write."""
    return profiles(fit_values.with_values(entries, kind, sample, found, TODAY))


@pytest.fixture(scope="module")
def scrambled(tmp_path_factory):
    """The shipped file with other figures in every column that holds a measurement."""
    with RUNS_CSV.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rng = np.random.default_rng(0)
    for row in rows:
        for name in PRINTED:
            if row[name]:
                row[name] = f"{rng.uniform(0.5, 5):.4f}"
    path = tmp_path_factory.mktemp("runs") / "runs.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


class TestFolds:
    @KIND
    @pytest.mark.parametrize(("key", "number"), SPLITS)
    def test_no_group_and_no_publication_is_in_two_folds(self, of, kind, key, number):
        keys = getattr(of[kind], key)
        fold = folds(keys, number)
        for name in np.unique(keys):
            assert len(set(fold[keys == name])) == 1, name

    @KIND
    @pytest.mark.parametrize(("key", "number"), SPLITS)
    def test_every_row_is_in_a_fold_and_none_holds_most_of_them(self, of, kind, key, number):
        fold = folds(getattr(of[kind], key), number)
        counts = np.bincount(fold, minlength=number)
        assert counts.sum() == len(of[kind].weight)
        assert np.sum(counts > 0) >= number - 1  # a hash may miss one
        assert counts.max() < 0.6 * counts.sum()  # a third of memory is one publication

    def test_the_fold_of_a_key_depends_on_nothing_else(self, of):
        keys = of["throughput"].publication
        alone = [int(folds(np.array([k]), fit_left_out.NEW_SOURCE)[0]) for k in keys[:50]]
        assert alone == folds(keys, fit_left_out.NEW_SOURCE)[:50].tolist()

    def test_a_publication_is_all_versions_of_a_repository(self, of):
        sample = of["throughput"]
        repositories = {str(s).split("@")[0].split(" ")[0] for s in sample.source}
        rounds = {r for r in repositories if r.startswith("mlcommons/training_results_v")}
        assert len(rounds) > 3
        one = "mlcommons/training_results"
        assert set(sample.publication.tolist()) == repositories - rounds | {one}
        assert len(repositories) < len(np.unique(sample.source))

    def test_a_group_lies_in_one_publication(self, of):
        sample = of["throughput"]
        for group in np.unique(sample.group):
            assert len(np.unique(sample.publication[sample.group == group])) == 1


class TestBlindness:
    """A forecast of a run rests on nothing that was measured in it."""

    def test_the_inputs_of_a_forecast_hold_no_measured_column(self):
        measured = {f.name for f in fields(RunMeasurements)}
        assert not measured & {f.name for f in fields(RunInputs)}

    def test_a_forecast_does_not_change_with_what_was_measured(self, scrambled):
        models = read_models(MODELS_CSV).facts
        runs, others = read_runs(RUNS_CSV), read_runs(scrambled)
        assert not np.array_equal(
            runs.measured.tokens_per_s_per_gpu, others.measured.tokens_per_s_per_gpu,
            equal_nan=True,
        )  # fmt: skip
        here, there = predict(runs.inputs, models), predict(others.inputs, models)
        assert here.nearby is there.nearby is None  # no run was given that they could be near to
        for f in fields(here):
            if f.name != "nearby":
                assert getattr(here, f.name).tolist() == getattr(there, f.name).tolist(), f.name

    def test_the_columns_of_a_fit_do_not_either(self, scrambled, monkeypatch):
        table = profiles(TABLE)
        plain = samples(table)
        monkeypatch.setattr(fit_columns, "RUNS_CSV", scrambled)
        for a, b in zip(plain, samples(table), strict=True):
            assert len(a.rows) == len(b.rows) > 100
            assert not np.array_equal(a.log_measured, b.log_measured)
            for name in ("work", "layouts", "cluster", "efficiency", "circumstances"):
                one, other = (getattr(sample.columns, name) for sample in (a, b))
                for f in fields(one):
                    if f.name != "model":
                        x, y = (np.asarray(getattr(part, f.name)) for part in (one, other))
                        assert np.array_equal(x, y, equal_nan=x.dtype.kind == "f"), f.name
            for name in ("weight", "family", "publication", "group", "stack", "rows"):
                assert getattr(a, name).tolist() == getattr(b, name).tolist(), name

    @KIND
    @settings(max_examples=3)
    @given(seed=st.integers(0, 2**16), split=st.sampled_from(SPLITS), which=st.integers(0, 4))
    def test_a_fit_without_a_fold_does_not_know_its_measurements(
        self, of, priors, kind, seed, split, which
    ):
        sample = of[kind]
        fold = folds(getattr(sample, split[0]), split[1]) == which
        noise = np.random.default_rng(seed).normal(0, 2, len(fold))
        scrambled = replace(sample, log_measured=np.where(fold, noise, sample.log_measured))
        here, there = (
            fit_values.fit_of(s, priors, kind, left_out=fold) for s in (sample, scrambled)
        )
        assert here.value.tolist() == there.value.tolist()
        assert here.sigma.tolist() == there.sigma.tolist()

    @KIND
    def test_and_a_fit_with_it_does(self, of, priors, fit_of, kind):
        slower = replace(of[kind], log_measured=of[kind].log_measured - 0.3)
        found = fit_values.fit_of(slower, priors, kind)
        assert found.value.tolist() != fit_of[kind].value.tolist()

    @KIND
    def test_a_fit_starts_at_the_priors_not_at_the_last_fit(self, of, fit_of, kind):
        """Every fitted value of the table moved within its bounds: the same result."""
        moved = [replace(e, value=0.5 * (e.low + e.high)) if e.fits == kind else e for e in TABLE]
        assert [e.value for e in moved] != [e.value for e in TABLE]
        again = [fit_values.at_prior(e) for e in moved]
        found = fit_values.fit_of(of[kind], again, kind)
        assert found.value.tolist() == fit_of[kind].value.tolist()


class TestWhatIsWritten:
    @KIND
    def test_the_table_forecasts_what_the_fit_did(self, of, priors, fit_of, kind):
        """The fit moves columns of values, a forecast reads profiles by stack: one and the same,
        also for stacks whose value the table sets and does not fit. What a row says of its own
        weights and memory stands."""
        sample, parameters = of[kind], fit_values.parameters_of(priors, kind)
        found = fit_of[kind]
        fitted = fit_columns.model(sample, priors, parameters, fit_values.KINDS[kind])(
            found.value[None]
        )
        written = table_of(priors, kind, sample, found)
        rows = [
            written.get(str(name)) or written.get(str(family)) or written[GENERIC]
            for name, family in zip(sample.stack, sample.family, strict=True)
        ]
        moved = {
            q: np.array([getattr(r, q) for r in rows]) for q in {e.quantity for e in parameters}
        }
        if "fragmentation" in moved:  # CUDA graphs keep memory of their own
            moved["fragmentation"] = moved["fragmentation"] + sample.columns.graph_reserve
        eff = replace(sample.columns.efficiency, **moved)
        forecast = fit_values.KINDS[kind](replace(sample.columns, efficiency=eff))
        assert np.log(forecast) == pytest.approx(fitted[0], abs=1e-9)

    def test_a_single_stack_differs_from_its_family(self, of, priors):
        """A difference of a stack is added to what its family has, in the fit and in the table."""
        family = next(e for e in priors if (e.stack, e.quantity) == ("torch", "matmul"))
        entries = [*priors, replace(family, stack="torchtitan")]
        sample, parameters = of["throughput"], fit_values.parameters_of(entries, "throughput")
        assert "torchtitan" in sample.stack
        found = fit_values.fit_of(sample, entries, "throughput")
        value = dict(
            zip(
                ((e.stack, e.quantity) for e in parameters),
                fit_columns.fitted_values(entries, parameters, found.value),
                strict=True,
            )
        )
        j = next(i for i, e in enumerate(parameters) if e.stack == "torchtitan")
        assert value["torchtitan", "matmul"] == pytest.approx(
            value["torch", "matmul"] + found.value[j], abs=1e-12
        )

    @KIND
    def test_only_the_values_of_its_kind_change_and_stay_in_their_bounds(
        self, of, priors, fit_of, kind
    ):
        found = fit_of[kind]
        for old, new in zip(
            priors, fit_values.with_values(priors, kind, of[kind], found, TODAY), strict=True
        ):
            if old.fits != kind:
                assert new == old
                continue
            assert new.low <= new.p10 <= new.value <= new.p90 <= new.high, new
            assert new.basis.startswith(f"fitted: {len(of[kind].weight)} {kind} rows")
            assert new.date == TODAY.isoformat()
            assert (new.prior, new.prior_sigma, new.note) == (
                old.prior, old.prior_sigma, old.note,
            )  # fmt: skip

    @KIND
    def test_a_fit_is_better_than_its_priors(self, of, priors, fit_of, kind):
        sample = of[kind]
        before = np.log(fit_values.KINDS[kind](sample.columns)) - sample.log_measured
        found = fit_of[kind]
        model = fit_columns.model(
            sample, priors, fit_values.parameters_of(priors, kind), fit_values.KINDS[kind]
        )
        after = model(found.value[None])[0] - sample.log_measured
        for how in (np.abs, np.square):
            assert np.average(how(after), weights=sample.weight) < np.average(
                how(before), weights=sample.weight
            )


@KIND
def test_a_parameter_moves_no_row_but_those_that_it_is_said_to_act_on(of, priors, kind):
    sample, parameters = of[kind], fit_values.parameters_of(priors, kind)
    of_values = fit_columns.model(sample, priors, parameters, fit_values.KINDS[kind])
    given = fit_columns.priors(parameters)
    trials = given.value + np.diag(np.where(given.value < given.high, 1, -1) * 0.1 * given.sigma)
    moved = of_values(trials) != of_values(given.value[None])
    acts_on = fit_columns.acts_on(sample, parameters, others=2)
    assert not np.any(moved & ~acts_on[:, :-2])
    assert [bool(x) for x in acts_on[:, -1]] == [e.stack == GENERIC for e in parameters]
    assert acts_on.mean() < 0.9


def test_the_memory_rows_alone_are_those_of_both_samples(of, priors):
    alone, beside = fit_columns.memory_sample(profiles(priors)), of["memory"]
    for name in ("log_measured", "weight", "family", "publication", "group", "stack", "newest"):
        assert getattr(alone, name).tolist() == getattr(beside, name).tolist(), name
    assert alone.rows.tolist() == beside.rows.tolist()
    bytes_of = fit_values.KINDS["memory"]
    assert bytes_of(alone.columns).tolist() == bytes_of(beside.columns).tolist()


def test_repeats_of_one_configuration_weigh_one(of):
    for sample in of.values():
        for name in np.unique(sample.configuration):
            assert sample.weight[sample.configuration == name].sum() == pytest.approx(1)


def test_many_rows_of_one_publication_weigh_less_than_as_many_of_several(of):
    sample = of["throughput"]
    weight = sample.weight * fit_intervals.publication_weight(sample, 0.25)
    for name in np.unique(sample.publication):
        mine = sample.publication == name
        assert weight[mine].sum() == pytest.approx(sample.weight[mine].sum() ** 0.75)
    assert np.all(fit_intervals.publication_weight(sample, 0.0) == 1)


def test_kernels_measured_alone_weigh_little_beside_the_runs(of):
    kernels = fit_kernels.WEIGHT * len(fit_kernels.log_measured())
    assert kernels < 0.1 * of["throughput"].weight.sum()


def test_a_stranger_has_nothing_of_its_stack_but_what_its_row_says(of, priors):
    table = profiles(priors)
    sample = of["memory"]
    mine = sample.stack == "ms-swift"
    found = fit_columns.strangers(sample, mine, table)
    assert set(found.family[mine]) == set(found.stack[mine]) == {""}
    for name in NAMES:
        own, values = (np.asarray(getattr(s.columns.efficiency, name)) for s in (sample, found))
        said = own[mine] != getattr(table["ms-swift"], name)
        assert np.all(values[mine] == np.where(said, own[mine], getattr(table[GENERIC], name)))
        assert said.any() == (
            name in ("own_weight_bytes", "reserve_reported", "fragmentation_reported")
        ), name
        assert np.array_equal(values[~mine], own[~mine])


def test_a_fit_of_logits_leaves_those_alone_that_a_software_is_known_to_hold(of, priors):
    """KempnerForge counts 8 bytes a logit by its habit, and so do losses of 16-bit logits, whatever
    the others are fitted to."""
    sample = of["memory"]
    parameters = fit_values.parameters_of(priors, "memory")
    place = [(e.stack, e.quantity) for e in parameters].index((GENERIC, "held_logits_bytes"))
    trials = np.tile([e.prior or 0.0 for e in parameters], (2, 1))
    trials[1, place] += 4.0
    few, many = fit_columns.model(sample, priors, parameters, fit_values.KINDS["memory"])(trials)
    known = np.asarray(sample.columns.work.logit_bytes) == 8
    assert known.sum() == 70
    assert np.all((few == many)[known])
    assert np.mean(few < many) > 0.3


def test_a_fit_of_recompute_leaves_the_share_of_layers_that_a_row_prints(of, priors):
    """Rows that print how many of their layers are computed again pay for that share."""
    sample = of["throughput"]
    share = np.asarray(sample.columns.work.recomputed_layers)
    assert {5 / 48, 21 / 80, 1 / 2, 50 / 80, 1.0} < set(share)
    parameters = fit_values.parameters_of(priors, "throughput")
    place = [(e.stack, e.quantity) for e in parameters].index((GENERIC, "full_recompute"))
    trials = np.tile([e.prior or 0.0 for e in parameters], (2, 1))
    trials[1, place] = 0.5
    some, more = fit_columns.model(sample, priors, parameters, fit_values.KINDS["throughput"])(
        trials
    )
    gained = more - some
    alike = (sample.family == "megatron") & (np.asarray(sample.columns.layouts.recompute) == 4)
    few = gained[alike & (share < 0.5)]  # adapters, of whose step a forward is a larger share
    assert 1.5 * few.max() < np.median(gained[alike & (share == 1)])
    assert few.min() > 0.005


def test_an_unnamed_stack_gives_a_run_neither_its_fractions_nor_its_habits(of, priors):
    named = of["throughput"]
    chips = read_runs(RUNS_CSV).inputs.accelerator[named.rows].astype(str)
    # Trainium says whose software it is.
    rows = named.rows[(named.stack == "megatron-lm") & ~np.char.startswith(chips, "Trn")]
    found, _ = samples(profiles(priors), rows)
    mine = np.isin(found.rows, rows)
    assert np.array_equal(found.stack, named.stack)
    assert np.array_equal(found.configuration, named.configuration)
    generic = profiles(priors)[GENERIC]
    for name in NAMES:
        values = np.asarray(getattr(found.columns.efficiency, name))[mine]
        # What selective means is a habit, too; what the counter counts is said by the row.
        elsewhere = ("selective_core", "reserve_reported", "fragmentation_reported")
        assert name in elsewhere or np.all(values == getattr(generic, name)), name
    habit = [np.asarray(sample.columns.work.async_tp) for sample in (named, found)]
    assert habit[0][mine].any()
    assert np.array_equal(habit[0][~mine], habit[1][~mine])
    assert not habit[1][mine].any()  # no particular stack overlaps tensor parallelism


@pytest.fixture(scope="module")
def result():
    return accuracy_fit.refit(TABLE, TODAY)


@pytest.mark.slow
@pytest.mark.timeout(3000)
class TestTheWholeFit:
    def test_the_shipped_table_is_what_the_fit_gives(self, result):
        """Nobody wrote a fitted value by hand; 2%: the last digits of solvers differ."""
        for shipped, new in zip(TABLE, result.entries, strict=True):
            assert (shipped.stack, shipped.quantity) == (new.stack, new.quantity)
            assert new.value == pytest.approx(
                shipped.value, rel=0.02, abs=0.005 * (shipped.high - shipped.low)
            ), (new.stack, new.quantity)

    def test_it_does_not_depend_on_the_last_fit(self, result, monkeypatch):
        """The forecasts of rows that a fit left out are the first one's: they take most of its
        time, and each of those fits begins as this one does."""
        left_out = iter([
            (getattr(outcome, name), outcome.left[name])
            for outcome in (result.memory, result.throughput)
            for name in (
                "grouped", "new_source", "new_stack", "unknown_stack", "new_accelerator", "newest"
            )
        ])  # fmt: skip
        monkeypatch.setattr(fit_left_out, "_unseen", lambda *_, **__: next(left_out))
        moved = [
            replace(e, value=0.5 * (e.low + e.high)) if e.fits in fit_values.KINDS else e
            for e in TABLE
        ]
        again = accuracy_fit.refit(moved, TODAY)
        assert [e.value for e in again.entries] == [e.value for e in result.entries]

    def test_unseen_rows_are_forecast_worse_than_seen_ones_but_not_by_much(self, result):
        for outcome in (result.throughput, result.memory):
            sample = outcome.sample
            errors = {
                name: np.average(np.abs(getattr(outcome, name) - sample.log_measured),
                                 weights=sample.weight)
                for name in ("fitted", "grouped", "new_source", "new_stack")
            }  # fmt: skip
            assert all(np.isfinite(x) for x in errors.values())
            # Runs near a row tell most of what the fit of it would: seen ones are nearer.
            assert errors["fitted"] < errors["grouped"] < 1.6 * errors["fitted"]
            assert errors["fitted"] < errors["new_source"] < 3 * errors["fitted"]

    def test_widths_cover_more_than_80_percent_of_unseen_rows(self, result):
        """Known stacks by grouped and new_source folds, unknown ones by new_stack; what runs near a
        row explain makes it narrower. Blind runs, of which fewer were inside, count in the fit of
        the widths: folds, which flatter, have more."""
        table = profiles(result.entries)
        throughput, _ = samples(table)
        known = circumstances_of(throughput.columns)
        sigma = np.asarray(uncertainty.throughput_sigma(throughput.columns.efficiency, known))
        wide = np.asarray(uncertainty.throughput_sigma(table[GENERIC], uncertainty.unknown(known)))
        weight = result.throughput.sample.weight
        for name, width in (("grouped", sigma), ("new_source", sigma), ("new_stack", wide)):
            missed = getattr(result.throughput, name) - throughput.log_measured
            left = np.sqrt(result.throughput.left[name])
            inside = np.abs(missed) <= Z_90 * width * left
            assert 0.8 < np.average(inside, weights=weight) < 0.93, name
