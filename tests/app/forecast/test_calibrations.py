"""A calibration moves the forecast of its machine, and without it everything is as before."""

from __future__ import annotations

import orjson
import pytest

from app.forecast import calibrations
from app.forecast import calibrations as files
from app.forecast.answer import answer
from app.forecast.choice import choice_of
from app.forecast.resolve import resolve, resolve_strict
from app.plan.words import answer_sentence
from core.errors import ScenarioError
from core.scenario import Scenario
from hardware.facts import accelerator
from runners.calibration.result import parse_result
from tests.made_up.results import H100, document, machine, result

ASKED = {
    "model": "llama3.1-8b", "num_tokens": "1e11", "global_batch_size": "256",
    "gpu": "H100-80GB-SXM,A100-80GB-SXM", "num_gpus": "16",
}  # fmt: skip
SLOW = {"matmul": 0.8, "attention": 0.9, "memory": 0.9, "elementwise": 1.3, "scale_up": 0.8}


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    calibrations._of_id.cache_clear()


def hours(found):
    return {p.id: p.wall_clock_hours for p in found.plans}


def calibrated(*ids):
    return resolve_strict(Scenario.parse({**ASKED, "calibration": ",".join(ids)}))


def test_a_slow_machine_takes_longer_and_others_as_long():
    before = answer(calibrated(), top=400)
    name = files.keep(result(machine(**SLOW)))
    after = answer(calibrated(name), top=400)
    old, new = hours(before), hours(after)
    assert all(new[i] > 1.05 * old[i] for i in old if H100 in i and i in new)
    assert {i: new[i] for i in new if "A100" in i} == {i: old[i] for i in new if "A100" in i}
    first = next(p for p in after.plans if p.offer.accelerator == H100)
    assert first.calibration == name
    assert any(name in sentence for sentence in first.assumptions)
    assert all(p.calibration == "" for p in after.plans if p.offer.accelerator != H100)


def test_removing_it_restores_the_forecast_exactly():
    before = answer(calibrated(), top=400)
    name = files.keep(result(machine(**SLOW)))
    assert hours(answer(calibrated(name), top=400)) != hours(before)
    files.remove(name)
    scenario, notes = resolve(Scenario.parse({**ASKED, "calibration": name}))
    assert any(f"calibration {name} is not on this server" in n for n in notes)
    assert hours(answer(scenario, top=400)) == hours(before)
    with pytest.raises(ScenarioError, match="this server has none"):
        resolve_strict(Scenario.parse({**ASKED, "calibration": name}))


def test_the_id_is_of_what_was_measured():
    one, other = result(machine(**SLOW)), result(machine())
    assert files.keep(one) == files.keep(one) == files.id_of(parse_result(files.text_of(one)))
    assert files.id_of(one) != files.id_of(other)
    assert files.ids() == [files.id_of(one)]


def test_a_link_pins_it():
    name = files.keep(result(machine(**SLOW)))
    scenario = calibrated(name)
    assert Scenario.from_query(scenario.to_query()) == (scenario, [])
    assert scenario.to_query()["calibration"] == name


def test_the_answer_says_that_it_is_calibrated():
    name = files.keep(result(machine(**SLOW)))
    scenario = resolve_strict(Scenario.parse({**ASKED, "gpu": H100, "calibration": name}))
    assert f"calibrated ({name})" in answer_sentence(scenario, answer(scenario, top=1))


def test_two_of_one_accelerator_are_refused():
    names = [files.keep(result(machine(matmul=x))) for x in (0.8, 0.9)]
    with pytest.raises(ScenarioError, match="both of H100-80GB-SXM: choose one"):
        calibrated(*names)


def test_a_measured_network_is_no_guess_and_does_not_widen_the_interval():
    name = files.keep(result(machine()))
    alone = {"gpu": "H100-80GB-SXM", "num_gpus": "16", "calibration": name}
    wide = answer(resolve_strict(Scenario.parse({**ASKED, **alone, "calibration": ""})), top=200)
    measured = answer(resolve_strict(Scenario.parse({**ASKED, **alone})), top=200)
    narrow = {p.id: p for p in measured.plans}
    guessed = [p for p in wide.plans if p.network and p.network.is_assumed]
    assert guessed
    for plan in guessed:
        new = narrow[plan.id]
        assert plan.at_half_network is not None
        assert new.at_half_network is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["results"][1].update(flops=1e18), "of the datasheet peak"),
        (lambda d: d["provenance"]["device"].update(sku_key="A100-80GB-SXM"), "is meant for A100"),
        (lambda d: d.update(control=[]), "control operation"),
        (lambda d: d["results"][-1].update(wrong=3), "the result of the operation is wrong"),
    ],
)
def test_what_cannot_be_believed_is_refused(change, says):
    found = document(machine())
    change(found)
    with pytest.raises(ScenarioError, match=says):
        calibrations.learned(parse_result(orjson.dumps(found)), accelerator(H100))


def test_a_damaged_file_says_so():
    name = files.keep(result(machine()))
    path = files.folder() / f"{name}.json"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ScenarioError, match="damaged: add it again"):
        files.load(name)
    path.write_bytes(files.text_of(result(machine(matmul=0.9))))
    with pytest.raises(ScenarioError, match="not what was added"):
        files.load(name)


def test_no_id_leads_out_of_the_folder():
    for name in ("../../etc/passwd", "", "x" * 16, "0" * 15):
        assert not files.has(name)
        with pytest.raises(ScenarioError):
            files.load(name)


def test_a_stack_is_corrected_by_all_that_was_measured_with_it_and_others_by_the_device():
    text = document(machine(**SLOW))
    ids = {}
    for stack in ("", "torchtitan", "a stack <b>of no table</b>"):
        told = {"stack": stack, "software_date": "2026-10"} if stack else {}
        text["provenance"]["told"] = told
        ids[stack] = files.keep(parse_result(orjson.dumps(text)))

    def machine_of(stack: str, told: str):
        scenario = calibrated(ids[told]).model_copy(update={"stack": stack})
        return next(m for m in choice_of(scenario).machines if m.calibration)

    whole = machine_of("torchtitan", "")
    assert "elementwise" in whole.measured
    assert machine_of("torchtitan", "torchtitan").cluster == whole.cluster
    assert "elementwise" in machine_of("megatron-lm", "").measured
    for told in ("torchtitan", "a stack <b>of no table</b>"):
        other = machine_of("megatron-lm", told)
        assert other.measured == whole.measured - {"elementwise"}
        assert other.cluster.elementwise_factor == 1
        assert other.cluster.matmul_at == whole.cluster.matmul_at
        assert other.cluster.ceiling == whole.cluster.ceiling
    assert other.calibrated_with == "another stack"
    kept = files.read(ids["torchtitan"])
    assert (kept.stack, kept.software_date) == ("torchtitan", "2026-10")
