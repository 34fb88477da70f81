"""Decision tables: every published row is answered, by forecasts that can be checked."""

import json
import re
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest

from app import cli
from app.document import format as fmt
from app.document.vocabulary import SHARDINGS
from app.forecast import answer as forecast_answer
from app.forecast import resolve
from app.forecast.machines import as_known, unpriced_machines
from app.forecast.one_case import Miss, Run, forecast
from app.forecast.training import efficiency_of, workload_of
from app.guides import claims as guides_claims
from app.guides import document as guides_document
from app.guides import words as say
from app.guides.decision import VERDICTS, together
from app.guides.decisions import counts, decisions_of, in_tables
from app.guides.figures import MEANS
from app.guides.stacks import spread
from app.guides.strategies import ON_GPU, WAYS, forecast_of, level, strategy
from app.guides.strategy import ALIKE, CLEARLY, decide_strategy
from app.scenario.model import model_of
from core.errors import FactError
from core.layout.layouts import CONTEXT_METHODS, RECOMPUTE, SCHEDULES, Layouts
from core.layout.sharding import INDEX
from core.layout.workload import OFFLOAD
from core.memory.memory import peak_bytes
from core.memory.offload import host_bytes, work_on
from core.scenario import Scenario
from hardware.decision_tables import (
    DECISIONS_CSV,
    TABLES,
    Advice,
    decision_tables,
    load_decision_tables,
)
from hardware.efficiency import stacks

# The rows of the published tables, in a word or two each.
PUBLISHED = {
    "A": ["Under 7B", "7 to 13B", "30 to 70B", "70B and more", "405B"],
    "B": [
        "Fits one GPU, speed", "optimizer sharded", "Does not fit one", "one node",
        "several nodes", "100B", "MoE, or a very long sequence",
    ],
    "C": ["LoRA up to 7B", "7 to 13B", "30 to 70B", "Pretrain 70B", "175B", "exceeds its memory"],
    "D": [
        "7B on one", "13B on one", "7B on 2 to 4", "13B on 2 to 4", "30 to 34B", "70B on 4",
        "70B on 8", "thumb, full", "thumb, QLoRA",
    ],
    "E": [
        "SFT or LoRA", "pretraining of 70B", "MoE of 405B", "TPU", "Cluster", "Alignment",
        "Backend-agnostic",
    ],
    "F": ["NO_SHARD", "SHARD_GRAD_OP", "FULL_SHARD", "HYBRID_SHARD", "ZeRO-1", "ZeRO-2"],
}  # fmt: skip


@pytest.fixture(scope="module")
def found():
    return {d.advice.id: d for d in decisions_of(TABLES)}


# --- every row ------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", PUBLISHED)
def test_every_published_row_is_asked_about(table):
    cases = list(dict.fromkeys(a.case for a in decision_tables() if a.table == table))
    assert len(cases) == len(PUBLISHED[table])
    for case, words in zip(cases, PUBLISHED[table], strict=True):
        assert words in case


def test_every_row_has_a_recommendation_and_a_reason(found):
    assert len(found) == len(decision_tables()) > 60
    for name, d in found.items():
        assert d.recommends, name
        assert d.reasons, name
        for sentence in (*d.reasons, *([d.disagreement] if d.disagreement else [])):
            assert sentence[-1] == ".", (name, sentence)
            assert "\n" not in sentence
            assert not re.search(rf"\bnan\b|\binf\b|{fmt.MISSING}", sentence), (name, sentence)


def test_only_what_does_not_agree_is_explained_and_with_figures(found):
    for name, d in found.items():
        explained = d.verdict in ("agrees in part", "disagrees")
        assert bool(d.disagreement) is explained, name
        assert not explained or re.search(r"\d", d.disagreement), name


def test_a_row_without_an_opinion_says_why(found):
    silent = [d for d in found.values() if d.verdict == "no opinion"]
    assert {d.advice.id for d in silent} == {"e_cluster", "e_alignment", "e_backend"}
    for d in silent:
        assert d.reasons == (d.advice.note,)
        assert d.run is None


def test_counts_add_up(found):
    counted = counts(found.values())
    assert tuple(counted) == VERDICTS
    assert sum(counted.values()) == len(found)
    assert all(counted.values()), "a verdict that nothing gets is not computed"


# --- what is recommended runs ---------------------------------------------------------------------


def as_layouts(run):
    """The one layout of a run as columns."""
    x = run.layout
    numbers = {
        name: np.array([float(getattr(x, name))])
        for name in ("tp", "pp", "virtual_stages", "cp", "ep", "etp", "dp_replicate", "dp_shard",
                     "micro_batch_size", "num_microbatches")
    }  # fmt: skip
    return Layouts(
        **numbers,
        num_gpus=np.array([float(run.scenario.num_gpus[0])]),
        strategy=np.array([INDEX[x.sharding]]),
        recompute=np.array([RECOMPUTE.index(x.recompute)]),
        sequence_parallel=np.array([float(x.tp > 1)]),
        schedule=np.array([SCHEDULES.index(x.schedule)]),
        context_method=np.array([CONTEXT_METHODS.index(x.context_parallel)]),
        reshard=np.array([float(x.reshard_after_forward)]),
        offload_optimizer=np.array([OFFLOAD[run.offload[0]]]),
        offload_params=np.array([OFFLOAD[run.offload[1]]]),
    )


def machine_of(scenario):
    machine = next(m for m in unpriced_machines() if m.accelerator.name == scenario.gpu[0])
    return as_known(machine, scenario)


def test_every_recommendation_fits_the_memory(found):
    """By the memory model itself, past the search that chose it."""
    checked = 0
    for name, d in found.items():
        if d.run is None:
            continue
        scenario = d.run.scenario
        layouts = as_layouts(d.run)
        work = work_on(workload_of(scenario, model_of(scenario)), layouts)
        machine = machine_of(scenario)
        eff = efficiency_of(scenario, work)
        parts = peak_bytes(work, layouts, machine.cluster, eff)
        need = float(sum(v[0] for v in parts.values()))
        assert need == pytest.approx(d.run.need_bytes), name
        assert need < float(machine.cluster.memory_bytes), name
        on_host = float(host_bytes(work, layouts, eff)[0])
        assert on_host == pytest.approx(d.run.host_bytes), name
        assert on_host <= (machine.host_bytes or on_host), name
        checked += 1
    assert checked > 45


def test_every_recommendation_uses_the_gpus_and_the_batch(found):
    for name, d in found.items():
        if d.run is None:
            continue
        x, s = d.run.layout, d.run.scenario
        ranks = x.dp_replicate * x.dp_shard
        assert ranks * x.tp * x.pp * x.cp == s.num_gpus[0], name
        assert ranks * x.micro_batch_size * x.num_microbatches == s.global_batch_size, name


def test_nothing_that_fits_is_clearly_faster_than_the_recommendation(found):
    for name, d in found.items():
        if d.advice.kind not in ("strategy", "stack") or d.run is None or d.run.is_tight:
            continue
        for a in d.alternatives:
            if isinstance(a.found, Run) and not a.found.is_tight:
                offloads = a.found.offload != ("none", "none") == d.run.offload
                slack = (1 + ALIKE) ** (2 if offloads else 1)
                assert d.run.step_s <= a.found.step_s * slack, (name, a.way)


def test_no_layout_at_all_is_clearly_faster_than_the_recommendation(found):
    """The whole search of the Plan page, on the same machine."""
    for name, d in found.items():
        if d.advice.kind == "strategy" and d.run is not None and not d.run.is_tight:
            best = forecast(d.advice.scenario)
            if isinstance(best, Run) and not best.is_tight:
                assert d.run.step_s <= best.step_s * (1 + ALIKE) ** 2, name


def test_the_host_is_used_where_it_must_be_or_pays(found):
    offloaded = {n for n, d in found.items() if d.run and d.run.offload != ("none", "none")}
    assert {"a_32b", "a_70b", "b_70b_8", "d_13b_2"} <= offloaded
    for name in offloaded:
        d = found[name]
        without = forecast({**d.advice.scenario, **ON_GPU})
        misses = isinstance(without, Miss) or without.is_tight
        assert misses or without.step_s > d.run.step_s * (1 + ALIKE), name


def test_strategy_verdicts_follow_from_the_forecasts():
    """Worked out again from the alternatives, without the figures printed with the advice."""
    for advice in decision_tables():
        if advice.kind != "strategy":
            continue
        d = decide_strategy(advice)
        published = [a.found for a in d.alternatives if a.published]
        assert len(published) == len(advice.ways)
        runs = [f for f in published if isinstance(f, Run)]
        sure = [r.step_s / d.run.step_s - 1 for r in runs if not r.is_tight]
        if not runs or (sure and len(sure) == len(runs) and min(sure) > CLEARLY):
            assert d.verdict == "disagrees", advice.id
        elif len(sure) == len(published) and max(sure) <= CLEARLY and min(sure) <= ALIKE:
            assert d.verdict == "agrees" or advice.then, advice.id
        else:
            assert d.verdict == "agrees in part", advice.id


# --- facts that stay ------------------------------------------------------------------------------


def test_lora_of_7b_runs_with_ddp(found):
    d = found["c_lora"]
    assert d.recommends == "DDP"
    best = forecast({**d.advice.scenario})
    assert d.run.step_s <= best.step_s * (1 + ALIKE)
    assert d.verdict == "agrees"


def test_70b_needs_the_host_on_one_node_of_h100_and_not_on_b300(found):
    assert "offload" in found["b_70b_8"].recommends
    assert found["b_70b_8"].verdict == "agrees in part"  # two ranks share each matrix there
    on_gpu = [a.found for a in found["b_70b_8"].alternatives if "cpu" not in a.way
              and "nvme" not in a.way]  # fmt: skip
    assert on_gpu
    assert all(isinstance(f, Miss) for f in on_gpu)
    assert "offload" not in found["b_70b_8_b300"].recommends
    assert found["b_70b_8_b300"].verdict == "disagrees"


def test_a_slow_network_turns_fsdp_into_a_pipeline(found):
    assert found["b_70b_64"].verdict == "agrees"
    slow = found["b_70b_64_slow"]
    assert slow.verdict == "disagrees"
    assert slow.run.layout.pp > 1
    assert "data-parallel communication" in slow.disagreement


def test_qlora_is_for_what_lora_does_not_fit(found):
    for name in ("d_7b_16", "d_13b_16", "d_13b_24"):
        assert found[name].recommends == "QLoRA"
        assert found[name].verdict == "agrees"
        others = [a.found for a in found[name].alternatives if a.way != "qlora"]
        # LoRA of 7B with a loss in pieces comes near 16 GB.
        assert all(isinstance(x, Miss) or x.is_tight for x in others)
    assert found["d_7b_24"].recommends == "LoRA"


def test_ddp_is_for_adapters_where_a_full_fine_tune_does_not_fit(found):
    assert found["d_7b_4_lora"].verdict == "agrees"
    lacking = {a.way: a.found for a in found["d_7b_4"].alternatives}["ddp"]
    assert isinstance(lacking, Miss)
    assert lacking.short_bytes > 0


def test_experts_and_long_sequences_are_spread(found):
    # Eight large experts are gathered like any weights: the busiest of eight ranks costs more.
    assert found["b_moe"].run.layout.dp_shard > 8
    assert found["b_long"].run.layout.cp > 1
    assert found["a_671b_moe"].run.layout.ep > 1


def test_offload_to_nvme_is_slower_than_to_the_host(found):
    runs = {a.way: a.found for a in found["c_offload"].alternatives}
    assert runs["zero3_nvme"].step_s > runs["zero3_cpu"].step_s


def test_rules_of_thumb_are_held_against_several_sizes(found):
    for name in ("d_rule_full", "d_rule_qlora"):
        d = found[name]
        assert len(d.reasons) == len(d.advice.ways) >= 4
        assert all("GB against" in r for r in d.reasons)


# --- printed figures are those of the Method page -------------------------------------------------


def test_printed_figures_have_the_verdict_of_the_method_page(found):
    checked = {c.claim.id: c for c in guides_claims.all_checked()}
    for name, d in found.items():
        if d.advice.kind == "memory":
            continue
        for claim in d.advice.claims:
            c = checked[claim]
            said = " ".join((d.recommends, *d.reasons, d.disagreement))
            assert c.ours_text in said, name
            if MEANS[c.verdict] != "agrees":
                assert d.verdict != "agrees", name


def test_3d_parallelism_costs_less_than_printed(found):
    for name in ("c_175b", "c_405b"):
        assert found[name].verdict == "agrees in part"
        assert "2x to 3x" in found[name].disagreement


# --- stacks ---------------------------------------------------------------------------------------


def test_stacks_are_told_apart_by_more_than_their_spread(found):
    d = found["e_70b"]
    runs = {a.way: a.found for a in d.alternatives}
    for stack in d.advice.ways:
        beyond = runs[stack].step_s > d.run.step_s * spread(runs[stack], d.run)
        assert (f"{stack} is " in d.disagreement) is beyond


def test_every_stack_says_what_its_profile_rests_on(found):
    for d in found.values():
        if d.advice.kind == "stack":
            said = " ".join(d.reasons)
            assert said.count("of its own") == len(d.alternatives)


def test_two_stacks_with_one_profile_are_as_fast(found):
    runs = {a.way: a.found for a in found["e_jax"].alternatives}
    assert runs["maxtext"].step_s == runs["levanter"].step_s
    assert found["e_jax"].verdict == "agrees"


# --- words ----------------------------------------------------------------------------------------


def test_a_strategy_is_said_as_practitioners_say_it():
    def said(**changes):
        run = forecast_of("zero3", {
            "model": "llama3.2-1b", "gpu": "H100-80GB-SXM", "num_gpus": 16, "seq_len": 2048,
            "global_batch_size": 64,
        })  # fmt: skip
        return strategy(replace(run, layout=replace(run.layout, **changes)))

    assert said() == "ZeRO-3"
    assert said(sharding="fsdp2", reshard_after_forward=False) == "FSDP2 without reshard"
    assert said(tp=2, dp_shard=8) == "ZeRO-3 + TP2"
    assert said(tp=2, cp=4, dp_shard=2) == "ZeRO-3 + TP2 + CP4"
    assert said(sharding="zero1", tp=4, pp=2, dp_shard=2) == "TP4 x PP2 x DP2 with ZeRO-1"
    assert said(sharding="zero1", tp=4, pp=4, dp_shard=1) == "TP4 x PP4"
    assert said(sharding="zero1", ep=8) == "ZeRO-1 + EP8"
    assert said(dp_shard=1) == "One GPU"


def test_what_is_simpler_comes_first():
    case = {"model": "llama2-7b", "gpu": "H200-141GB-SXM", "num_gpus": 16, "task": "lora",
            "seq_len": 2048, "global_batch_size": 64}  # fmt: skip
    ways = ("ddp", "zero1", "zero2", "zero3", "hsdp", "zero3_tp", "tp_pp", "zero3_cpu")
    levels = [level(forecast_of(way, case)) for way in ways]
    assert levels == sorted(levels)
    assert len(set(levels)) == len(levels)


def test_times_are_said_as_people_say_them():
    run = forecast_of("ddp", {"model": "llama3.2-1b", "gpu": "H100-80GB-SXM", "num_gpus": 8,
                              "seq_len": 2048, "global_batch_size": 64})  # fmt: skip
    at = [replace(run, step_s=s) for s in (1.0, 1.001, 1.1, 0.9, 3.0)]
    assert [say.times(r, at[0]) for r in at[1:]] == [
        "is as fast", "is 10% slower", "is 10% faster", "takes 3 times as long",
    ]  # fmt: skip
    assert say.times(at[4], at[0], "DDP") == "takes 3 times as long as DDP"
    assert say.times(at[2], at[0], "DDP") == "is 10% slower than DDP"


def test_verdicts_of_one_row_are_joined():
    assert together(["agrees", "agrees"]) == "agrees"
    assert together(["disagrees", "disagrees"]) == "disagrees"
    assert together(["agrees", "disagrees"]) == "agrees in part"


# --- links ----------------------------------------------------------------------------------------


def test_every_link_opens_the_case(found):
    for name, d in found.items():
        assert bool(d.link) is (d.advice.kind not in ("memory", "none")), name
        scenario, notes = Scenario.from_query(dict(d.link))
        assert not notes, name
        if d.link:
            assert resolve.resolve_strict(scenario) == scenario, name
            assert scenario.rank_by == "time"
            for field, value in d.advice.scenario.items():
                if field not in ("task", "stack"):
                    given = Scenario.parse({field: value})
                    assert getattr(scenario, field) == getattr(given, field), name


@pytest.mark.parametrize("name", ["c_lora", "b_70b_8", "d_7b_16"])
def test_the_linked_page_answers_with_what_is_recommended(found, name):
    d = found[name]
    scenario, _ = Scenario.from_query(dict(d.link))
    plan = forecast_answer.answer(scenario, top=1).plans[0]
    assert plan.tokens_per_s.p50 >= 0.95 * d.run.tokens_per_s


# --- the table ------------------------------------------------------------------------------------


def test_every_name_in_the_table_is_known():
    for advice in decision_tables():
        names = {*advice.ways, *advice.then, *advice.beside}
        if advice.kind in ("strategy", "task", "saving"):
            assert names <= set(WAYS), advice.id
        elif advice.kind == "stack":
            assert names <= set(stacks()), advice.id
        assert advice.source
        assert advice.kind in ("none", "memory") or Scenario.parse(advice.scenario).num_gpus


def test_every_sharding_of_a_layout_has_its_words():
    assert set(SHARDINGS) == set(INDEX)


HEAD = DECISIONS_CSV.read_text().splitlines()[0]
GOOD = dict(zip(
    HEAD.split(","),
    ["x", "A", "a case", "DDP", "strategy", "model=llama3.2-1b&num_gpus=8", "ddp", "", "", "", "",
     "", "", "a guide", "2026"],
    strict=True,
))  # fmt: skip


def written(tmp_path, *rows):
    path = tmp_path / "decision_tables.csv"
    path.write_text("\n".join([HEAD, *(",".join(r.values()) for r in rows)]) + "\n")
    return path


def test_a_good_row_is_read(tmp_path):
    (advice,) = load_decision_tables(written(tmp_path, GOOD))
    assert isinstance(advice, Advice)
    assert advice.ways == ("ddp",)
    assert advice.scenario == dict(parse_qsl(GOOD["scenario"]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"table": "Z"}, "is of table 'Z'"),
        ({"kind": "guess"}, "kind 'guess'"),
        ({"ways": ""}, "x has no ways"),
        ({"scenario": ""}, "x has no scenario"),
        ({"kind": "none"}, "x has no note"),
        ({"kind": "memory"}, "x has no claims, gb_per_billion, gb_more"),
        ({"claims": "no_such"}, "names the claim no_such"),
        ({"gb_per_billion": "many"}, "could not convert"),
        ({"scenario": "model"}, "x: bad query field"),
        ({"source": ""}, "x has no source"),
        ({"source_date": "soon"}, "source date"),
        ({"id": ""}, "is empty or given twice"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path, change, says):
    with pytest.raises(FactError, match=r"decision_tables.csv:2.*" + re.escape(says)):
        load_decision_tables(written(tmp_path, {**GOOD, **change}))


def test_a_row_given_twice_is_refused(tmp_path):
    with pytest.raises(FactError, match=r"decision_tables.csv:3: the id 'x'"):
        load_decision_tables(written(tmp_path, GOOD, GOOD))


def test_what_never_fits_says_so():
    """A strategy whose every layout misses still has its row, with how much is lacking."""
    advice = next(a for a in decision_tables() if a.id == "a_1b")
    d = decide_strategy(replace(advice, scenario={
        **advice.scenario, "model": "llama3.1-405b", "gpu": "RTX4090", "num_gpus": "2",
    }))  # fmt: skip
    assert d.verdict == "disagrees"
    assert d.run is None
    assert "does not fit" in d.disagreement
    assert d.recommends == say.recommended(None)


# --- the command and the page ---------------------------------------------------------------------


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        cli.main(["decide", *arguments])
    out, err = capsys.readouterr()
    return end.value.code, out, err


def test_the_command_prints_every_row(capsys, found):
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    told = " ".join(out.split())
    for letter, title in TABLES.items():
        assert f"{letter}. {title}" in told
    for d in found.values():
        assert f"{d.advice.case}: {d.advice.advice} ({d.verdict})" in told
        assert d.disagreement in told


def test_the_json_holds_what_the_page_shows(capsys, found):
    code, out, _ = run(capsys, "--table", "c,e", "--json")
    document = json.loads(out)
    assert code == 0
    assert [t["table"] for t in document["tables"]] == ["C", "E"]
    rows = {r["id"]: r for t in document["tables"] for r in t["rows"]}
    assert set(rows) == {n for n, d in found.items() if d.advice.table in "CE"}
    for name, row in rows.items():
        assert row["recommends"] == found[name].recommends
        assert row["verdict"] == found[name].verdict.replace(" ", "_")
        assert len(row["alternatives"]) == len(found[name].alternatives)
    assert sum(document["verdicts"].values()) == len(rows)


def test_every_json_key_is_documented(capsys, project_files):
    from tests.support.documented_keys import paths

    (document,) = [p for p in project_files if p.as_posix().endswith("docs/decision-tables.md")]
    keys = set(paths(json.loads(run(capsys, "--json")[1])))
    listed = set(re.findall(r"^\| `([^`]+)` \|", document.read_text(), re.MULTILINE))
    assert keys == listed


@pytest.mark.parametrize(("table", "says"), [("Z", "'Z' is not one of A (by model"),
                                             (" , ", "names no table")])  # fmt: skip
def test_an_unknown_table_is_one_sentence(capsys, table, says):
    code, out, err = run(capsys, "--table", table)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def script():
    from app.guides import page as guides_page

    guides_page.draw()


@pytest.fixture(scope="module")
def page():
    """The page with every table chosen."""
    page = AppTest.from_function(script, default_timeout=60).run()
    assert [s.value for s in page.subheader] == [f"A. {TABLES['A']}"]
    return page.multiselect(key="decisions_table").set_value(list(TABLES)).run()


def plain(text):
    return text.replace("\\", "").replace("\N{WORD JOINER}", "")


def test_the_page_shows_every_row_and_its_disagreement(page, found):
    assert not page.exception
    shown = plain("\n".join(e.value for e in page.markdown))
    for d in found.values():
        assert d.advice.advice in shown
        assert d.recommends in shown
        assert d.disagreement in shown
        assert all(r in shown for r in d.other_reasons)
    assert [int(m.value) for m in page.metric] == list(counts(found.values()).values())


def test_the_page_is_filtered_by_table_and_verdict(found):
    page = AppTest.from_function(script, default_timeout=60).run()
    page.multiselect(key="decisions_table").set_value(["D"]).run()
    assert [s.value for s in page.subheader] == [f"D. {TABLES['D']}"]
    page.multiselect(key="decisions_verdict").set_value(["disagrees"]).run()
    shown = plain("\n".join(e.value for e in page.markdown))
    kept = [d for d in found.values() if d.advice.table == "D"]
    assert {d.verdict for d in kept} > {"disagrees"}
    for d in kept:
        if d.disagreement:
            assert (d.disagreement in shown) is (d.verdict == "disagrees")
    assert not page.exception
    page.multiselect(key="decisions_table").set_value([]).run()
    assert not page.subheader
    assert not page.exception


def test_cases_of_one_published_row_stand_together(found):
    cases = list(guides_document.cases(decisions_of(["A"]), {"a_1b": "/?x=1"}).values())
    assert [len(rows) for rows in cases] == [2, 2, 2, 2, 3]
    assert "[Open as a plan](/?x=1)" in cases[0][0].recommends
    assert "Open as a plan" not in cases[0][1].recommends
    assert list(in_tables(found.values())) == list(TABLES)


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_fits_a_screen_and_its_links_lead_to_plans(new_user, width):
    user = new_user(viewport={"width": width, "height": 900})
    user.open("/decisions")
    expect(user.page.get_by_role("heading", name=f"A. {TABLES['A']}")).to_be_visible()
    assert user.page.get_by_test_id("stMain").evaluate("m => m.scrollWidth <= m.clientWidth + 1")
    address = user.page.get_by_role("link", name="Open as a plan").first.get_attribute("href")
    assert address.startswith(f"{user.base_url}/?v=1&")
    user.page.goto(address)
    user.settle()
    expect(user.page.get_by_text("Llama 3.2 1B").first).to_be_visible()
