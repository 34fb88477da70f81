"""Plans side by side, and two links: figures, differences, and what is pasted by strangers."""

import datetime as dt
import math
from dataclasses import replace

import pytest

from app.document import format as fmt
from app.document.escape import as_text
from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.options import side_by_side, side_by_side_words, two_links
from app.options.side_by_side import Subject
from core.cost.uncertain import certain
from core.errors import ScenarioError
from core.scenario import Scenario

TODAY = dt.date(2026, 12, 1)
JOB = {
    "model": "llama3.1-8b", "num_tokens": "100B", "gpu": "H100-80GB-SXM", "cloud": "aws",
    "num_gpus": "32,64", "deadline_days": "3",
}  # fmt: skip


def asked(**given):
    return resolve.resolve_strict(Scenario.parse({**JOB, **given}))


@pytest.fixture(scope="module")
def scenario():
    return asked()


@pytest.fixture(scope="module")
def plans(scenario):
    found = forecast_answer.answer(scenario, top=40).plans
    return [next(p for p in found if p.num_gpus == n) for n in (64, 32)]


@pytest.fixture(scope="module")
def compared(scenario, plans):
    return side_by_side.subjects(scenario, plans)


@pytest.fixture(scope="module")
def rows(compared):
    return {r.label: r for r in side_by_side.rows(compared, TODAY)}


def test_every_figure_is_the_plans_own(rows, plans):
    a, b = plans
    assert rows["Expected cost"].numbers == (a.expected_usd, b.expected_usd)
    assert rows["Cost, P90"].numbers == (a.cost.paid.p90, b.cost.paid.p90)
    assert rows["Expected time"].numbers == (a.expected_hours, b.expected_hours)
    assert rows["Cost without failures"].numbers == (a.usd.p50, b.usd.p50)
    assert rows["Tokens/s"].numbers == (a.tokens_per_s.p50, b.tokens_per_s.p50)
    assert rows["MFU"].numbers == (a.mfu, b.mfu)
    assert rows["GPUs"].numbers == (64, 32)
    assert rows["Memory left"].numbers[0] == pytest.approx(
        a.memory_capacity_bytes - sum(a.memory_bytes.values())
    )
    assert rows["Cost of 1M tokens"].numbers[0] == pytest.approx(a.expected_usd / 100_000, rel=1e-4)
    assert rows["Expected time"].numbers[1] > rows["Time without failures"].numbers[1]
    assert rows["Energy"].numbers[0] > 0
    assert rows["Layout"].texts == tuple(fmt.layout_short(p.layout) for p in plans)


def test_plans_of_one_name_are_told_apart(scenario, plans):
    a = plans[0]
    elsewhere = replace(a, id="b", offer=replace(a.offer, region="eu-west-1"))
    spot = replace(a, id="c", offer=replace(a.offer, purchase="spot"))
    two = side_by_side.subjects(scenario, [a, elsewhere, plans[1]])
    assert [s.apart for s in two] == [a.offer.region, "eu-west-1", ""]
    names = [s.name for s in side_by_side.subjects(scenario, [a, elsewhere, spot])]
    assert names[2] == f"C: 64 x H100-80GB-SXM, aws {a.offer.region} spot"
    assert len({n.partition(": ")[2] for n in names}) == 3


def test_a_difference_is_against_the_first_plan(rows):
    assert rows["GPUs"].deltas == ("", "-32, -50%")
    first, second = rows["Expected time"].numbers
    assert rows["Expected time"].deltas[1].startswith(f"+{fmt.days(second - first)}, +")
    assert rows["Price, GPU-hour"].deltas[1] == "same"
    first, second = rows["MFU"].texts[:2]
    assert rows["MFU"].deltas[1].endswith("same" if first == second else " points")
    assert "misses the deadline" in rows["Deadline and budget"].texts[1]
    assert rows["Deadline and budget"].texts[0] == "within the limits"


def test_what_is_not_known_is_said_and_not_compared(scenario, plans):
    nothing = certain(float("nan"))
    cost = replace(plans[1].cost, total=nothing, paid=nothing, failure_free=nothing)
    unpriced = replace(plans[1], usd_per_gpu_hour=None, cost=cost)
    compared = side_by_side.subjects(scenario, [plans[0], unpriced])
    rows = {r.label: r for r in side_by_side.rows(compared, TODAY)}
    assert rows["Expected cost"].texts[1] == "not known"
    assert rows["Expected cost"].deltas == ("", "")
    assert rows["Price seen"].texts[1] == "not known"
    told = " ".join(side_by_side_words.sentences(compared)[0])
    assert "without a price of both" in told


def test_the_table_has_a_column_a_plan_and_the_file_its_numbers(compared, rows):
    every = list(rows.values())
    names = [s.name for s in compared]
    table = side_by_side.table(every, names)
    assert list(table.columns) == ["A: 64 x H100-80GB-SXM, aws", "B: 32 x H100-80GB-SXM, aws"]
    assert table.loc["GPUs"].tolist() == ["64", "32 (-32, -50%)"]
    assert "(same)" not in table.to_string()
    differ, same = side_by_side.differing(every)
    assert len(differ) + len(same) == len(every)
    assert {"Cloud", "Price, GPU-hour"} <= {r.label for r in same}
    assert {"GPUs", "Expected time"} <= {r.label for r in differ}
    file = side_by_side.file(every, names).set_index("quantity")
    assert file.loc["GPUs", "B minus A"] == -32
    assert file.loc["Expected time", "unit"] == "hours"
    assert file.loc["Instance", names[0]] == "p5.48xlarge"


def test_the_words_name_the_largest_terms_and_they_add_up(compared, plans):
    (time, run, memory), *others = side_by_side_words.sentences(compared)
    assert not others
    assert time.startswith("B (32 x H100-80GB-SXM, aws) takes ")
    assert "longer a step" in time
    longest = max(plans[0].step_s, key=lambda n: abs(plans[1].step_s[n] - plans[0].step_s[n]))
    assert longest == "matmul"
    assert "matrix multiplications +" in time
    assert run.startswith("Over the run, without failures: ")
    assert "for the price of a GPU-hour" in run
    assert "memory on a GPU" in memory


def test_steps_of_other_work_are_compared_over_the_run(scenario, plans):
    bigger = asked(global_batch_size="2048")
    plan = next(p for p in forecast_answer.answer(bigger, top=40).plans if p.num_gpus == 64)
    first = Subject(letter="A", scenario=scenario, plan=plans[0])
    second = Subject(letter="B", scenario=bigger, plan=plan)
    assert plan.num_steps != plans[0].num_steps
    ((time, _, _),) = side_by_side_words.sentences((first, second))
    assert "over the run, whose steps are other work" in time
    assert "a step" not in time


# --- two links -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "http://host:8501/options?v=1&model=llama3.1-70b&num_gpus=64",
        "?v=1&model=llama3.1-70b&num_gpus=64",
        "  v=1&model=llama3.1-70b&num_gpus=64#part\n",
        "v=1&model=llama3.1-70b&num_gpus=64&show_cloud=aws",
    ],
)
def test_a_link_or_its_query_is_read(text):
    other, notes = two_links.parsed(text)
    assert other.model == "llama3.1-70b"
    assert other.num_gpus == (64,)
    assert notes == []
    assert other.prices == resolve.current_prices()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello", "no scenario in it"),
        ("https://example.com/", "no scenario in it"),
        ("?", "no scenario in it"),
        ("<img src=x onerror=alert(1)>", "no scenario in it"),
        ("x=" + "y" * 100_000, "100,002 characters"),
        ("&".join(f"a{n}=1" for n in range(500)), "more than 200 fields"),
    ],
)
def test_what_is_no_link_is_a_sentence(text, says):
    with pytest.raises(ScenarioError, match=says):
        two_links.parsed(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("v=99&model=llama3.1-8b", "This link says v='99'"),
        ("model=llama3.1-8b&colour=red", "colour='red' is not a field of a scenario"),
        ("num_gpus=-5", "num_gpus"),
        ("budget_usd=nan", "budget_usd"),
        ("model=nosuch", "Unknown"),
        ("gpu=H100-80GB-SXMM", "Did you mean"),
        ("prices=abc", "recomputed with the prices"),
        ("v=1&<script>alert(1)</script>=1", "is not a field"),
        ("model=%00%ff%FE", "model"),
        ("num_gpus=8&num_gpus=64", "2 times"),
        ("s=nosuchlink", "short link"),
    ],
)
def test_what_a_link_cannot_mean_is_a_note(text, says):
    _, notes = two_links.parsed(text)
    assert says in " ".join(notes)
    assert "<" not in as_text(" ".join(notes)).replace("\\<", "")


def test_a_link_of_nonsense_gets_few_notes():
    _, notes = two_links.parsed("v=1&" + "&".join(f"a{n}=1" for n in range(150)))
    assert len(notes) == two_links.MOST_NOTES + 1
    assert notes[-1] == "There are more notes like these."


def test_the_fields_that_differ_are_told_with_both_values():
    first = asked(purchase="on_demand", prices=resolve.current_prices())
    second = asked(
        purchase="spot", num_tokens="2T", deadline_days="30", cloud="", plan="x", pinned="y,z",
        prices=resolve.current_prices(),
    )  # fmt: skip
    found = two_links.differences(first, second).set_index("Field")
    assert found.loc["Purchase"].tolist() == ["On demand", "Spot"]
    assert found.loc["Training tokens"].tolist() == ["100B", "2T"]
    assert found.loc["Clouds"].tolist() == ["aws", "Every cloud"]
    assert len(found) == 4
    counts = two_links.differences(first, first.model_copy(update={"num_gpus": ()}))
    assert counts["Other link"].tolist() == ["Powers of two"]
    assert two_links.differences(first, first).empty


def test_the_plan_of_a_link_is_the_one_it_names(scenario):
    answer = forecast_answer.answer(scenario, top=5)
    third = answer.plans[2]
    assert two_links.plan_of(scenario.model_copy(update={"plan": third.id}), answer) == (
        third, "the plan that the link names",
    )  # fmt: skip
    assert two_links.plan_of(scenario, answer) == (answer.plans[0], "the recommended plan")
    plan, told = two_links.plan_of(scenario.model_copy(update={"plan": "gone"}), answer)
    assert plan is answer.plans[0]
    assert "'gone' is not among" in told


def test_a_run_that_never_ends_is_said(scenario, plans):
    hopeless = asked(failures_per_node_day="1e5")
    found = forecast_answer.answer(hopeless, top=2).plans
    rows = {r.label: r for r in side_by_side.rows(side_by_side.subjects(hopeless, found), TODAY)}
    assert rows["Expected time"].texts == ("never ends", "never ends")
    assert rows["Expected time"].deltas == ("", "")
    assert not math.isfinite(rows["Expected cost"].numbers[0])
