"""The Accuracy page without a browser: its figures are those of the report, tables and charts."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.accuracy import charts, errors, regret, words
from app.accuracy import document as tables
from app.accuracy import own_runs as own
from app.accuracy import page as accuracy_page
from app.accuracy.choices import regrets_of
from app.accuracy.validate import validate
from app.document import format as fmt
from app.document.chart_parts import INK, LIMIT
from core.errors import RunsError
from core.evidence.accuracy import MEMORY_CLASSES
from hardware.claims import not_modelled
from hardware.cross_validation import choice_figures, cross_validation
from hardware.estimators import estimators
from hardware.measured import MODELS_CSV, PAIRS_CSV, RUNS_CSV

THEMES = ("light", "dark")


def script():
    from app.accuracy import page as accuracy_page

    accuracy_page.draw()


@pytest.fixture(scope="module")
def report():
    return validate(RUNS_CSV, MODELS_CSV, PAIRS_CSV)


@pytest.fixture(scope="module")
def page():
    """The page with every part opened."""
    page = AppTest.from_function(script, default_timeout=60)
    for part in ("choices", "classes", "families", "memory", "pairs"):
        page.session_state[f"accuracy_{part}_part"] = True
    page.session_state["accuracy_missing"] = True
    return page.run()


def plain(text):
    return str(text).replace("\\", "").replace("\N{WORD JOINER}", "")


def shown(page):
    return plain("\n".join(e.value for e in (*page.markdown, *page.caption)))


def frames(page):
    return [e.value for e in (*page.dataframe, *page.table)]


def every(report):
    return tables.chosen_rows(report, {})


# --- the page ------------------------------------------------------------------------------------


def test_the_page_stands_and_says_the_answer_first(page, report):
    assert not page.exception
    assert not page.error
    assert not page.warning
    unseen = cross_validation()
    assert plain(page.markdown[0].value) == f"**{words.closeness_sentence(unseen)}**"
    for card, (split, label) in zip(page.metric, words.CLOSENESS.items(), strict=True):
        median, far, near = (unseen[split, m].value for m in ("median", "p90", "within_20"))
        assert plain(card.value) == fmt.percent(median)
        assert f"**{label}**" in shown(page)
        runs = f"{unseen[split, 'median'].rows:,} runs"
        assert f"{runs}; P90 {fmt.percent(far)}; {fmt.percent(near)} within 20%" in shown(page)


def test_every_sentence_of_the_report_is_on_the_page(page, report):
    for sentence in (
        *words.coverage_lines(report.throughput),
        words.memory_sentence(report),
        words.pairs_sentence(report),
        words.weak_knobs(report),
    ):
        assert sentence in shown(page)


def test_every_table_is_on_the_page(page, report):
    found = [(len(f), f.columns[0]) for f in frames(page)]
    for wanted in (
        errors.headlines(report, cross_validation()),
        regret.table([*regret.of_unseen(choice_figures()), *regret.of_rows(regrets_of(report))]),
        regret.worst_table(regret.worst_groups(regrets_of(report))),
        errors.of_classes(report),
        errors.of_families(report),
        errors.of_memory(report),
        tables.pairs(report),
    ):
        assert (min(len(wanted.rows), accuracy_page.LISTED), wanted.head[0]) in found


def test_every_published_figure_is_beside_ours(page, report):
    texts = [plain(x) for f in frames(page) for x in np.ravel(f.to_numpy(dtype=str))]
    for e in estimators():
        assert any(f"{e.value:g}{e.unit}" in x and e.estimator in x for x in texts)
        assert any(e.source in x for x in texts)
    ours = fmt.percent(report.throughput.overall.mean_ape)
    base = fmt.percent(report.baseline.overall.mean_ape)
    assert f"Runcast: mean error of the throughput {ours}" in texts
    assert f"Constant MFU: mean error of the throughput {base}" in texts


def test_what_is_not_modelled_is_on_the_page(page):
    texts = {plain(x) for f in frames(page) for x in np.ravel(f.to_numpy(dtype=str))}
    assert {m.why for m in not_modelled()} <= texts


def test_a_filter_changes_the_chart_and_its_sentence(report):
    page = AppTest.from_function(script, default_timeout=60).run()
    before = shown(page)
    page.multiselect(key="accuracy_only_architecture").set_value(["moe"]).run()
    page.multiselect(key="accuracy_only_precision").set_value(["bf16"]).run()
    assert not page.exception
    rows = tables.chosen_rows(report, {"architecture": ["moe"], "precision": ["bf16"]})
    sentence = words.answer_sentence(report.throughput.of(rows), report.baseline.of(rows))
    assert sentence in shown(page)
    assert sentence not in before
    page.multiselect(key="accuracy_only_accelerator").set_value(["RTX4090"]).run()
    assert [plain(i.value) for i in page.info] == [
        "No measured run is all of this: take a filter away."
    ]


# --- tables --------------------------------------------------------------------------------------


def test_a_point_is_a_scored_run_with_its_forecast(report):
    points = tables.points(report, every(report))
    assert len(points) == report.throughput.overall.n == points["run_id"].nunique()
    ratio = points["measured_tokens_per_s_per_gpu"] / points["predicted_tokens_per_s_per_gpu"]
    assert points["measured_over_predicted"].to_numpy() == pytest.approx(ratio.to_numpy())
    inside = (points["inside_p10_p90"] == "yes").mean()
    assert inside == pytest.approx(report.throughput.overall.coverage_80)


@pytest.mark.parametrize("kind", tables.FILTERS)
def test_the_choices_of_a_filter_are_its_parts_and_hold_every_run_once(report, kind):
    counts = [
        len(tables.points(report, tables.chosen_rows(report, {kind: [label]})))
        for label in tables.choices(report, kind)
    ]
    assert sum(counts) == report.throughput.overall.n
    assert counts == sorted(counts, reverse=True)


def test_metrics_of_chosen_rows_are_those_of_the_part(report):
    for label, part in report.throughput.by["framework"].items():
        rows = tables.chosen_rows(report, {"framework": [label]})
        assert report.throughput.of(rows) == part


def test_the_memory_classes_hold_every_known_outcome(report):
    frame = tables.memory_classes(report).frame()
    assert list(frame["Forecast"]) == list(MEMORY_CLASSES)
    for column, n in (("Runs that ran", report.oom.n_fit), ("Runs that ran out", report.oom.n_oom)):
        assert frame[column].sum() == n


def test_a_knob_is_held_to_no_change_from_ten_pairs_on(report):
    frame = tables.pairs(report).frame().set_index("Knob")
    for name, row in frame.iterrows():
        few = row["Pairs"] < words.KNOBS_FROM
        assert (row["Against no change"] == "too few pairs") == few, name
        if row["Against no change"] == "worse":
            assert row["Log error"] > row["If no change"]


# --- charts --------------------------------------------------------------------------------------


def layers(spec, mark):
    return [x for x in spec["layer"] if x["mark"]["type"] == mark]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", tables.FILTERS)
def test_the_ratio_chart_has_log_axes_and_doubles_colour_by_shape(report, kind, theme):
    points = tables.points(report, every(report))
    spec = charts.ratios(points, kind=kind, title="Kind", theme=theme).to_dict(validate=True)
    dots = layers(spec, "point")[0]["encoding"]
    assert dots["x"]["scale"]["type"] == dots["y"]["scale"]["type"] == "log"
    assert dots["x"]["axis"]["title"] == "Predicted tokens/s per GPU"
    assert dots["y"]["axis"]["title"] == "Measured / predicted"
    colour, shape = dots["color"]["scale"], dots["shape"]["scale"]
    assert colour["domain"] == shape["domain"]
    assert len(set(shape["range"])) == len(set(colour["range"])) == len(colour["domain"])
    ratios = points["measured_over_predicted"]
    low, high = dots["y"]["scale"]["domain"]
    assert low < ratios.min()
    assert high > ratios.max()


def test_the_band_of_the_ratio_chart_is_an_error_of_20_percent(report):
    points = tables.points(report, every(report))
    spec = charts.ratios(points, kind="task", title="Task", theme="light").to_dict()
    rows = [row for rows in spec["datasets"].values() for row in rows if "high" in row]
    for edge in (rows[0]["low"], rows[0]["high"]):
        assert abs(1 / edge - 1) == pytest.approx(0.2)  # predicted / measured - 1


@pytest.mark.parametrize("theme", THEMES)
def test_the_coverage_chart_shows_every_class_of_its_kind(report, theme):
    frame = errors.of_classes(report).frame()
    part = frame[frame["Kind"] == "Stack"]
    spec = charts.coverage(part, theme=theme).to_dict(validate=True)
    dots = layers(spec, "point")[0]
    assert dots["encoding"]["y"]["sort"] == list(part["Class"])
    assert (
        dots["encoding"]["color"]["scale"]["domain"] == dots["encoding"]["shape"]["scale"]["domain"]
    )
    assert set(part["Interval"]) <= set(dots["encoding"]["color"]["scale"]["domain"])


@pytest.mark.parametrize("theme", THEMES)
def test_text_of_the_charts_is_in_the_ink_of_the_theme(report, theme):
    points = tables.points(report, every(report))
    part = errors.of_classes(report).frame().head(5)
    for chart in (
        charts.ratios(points, kind="task", title="Task", theme=theme),
        charts.coverage(part, theme=theme),
    ):
        spec = chart.to_dict()
        inks = {x["mark"]["color"] for x in layers(spec, "text") + layers(spec, "rule")}
        assert inks <= {INK[theme], LIMIT[theme]}
        for layer in layers(spec, "point"):
            assert layer["encoding"]["color"]["legend"]["labelColor"] == INK[theme]


# --- runs of one's own ---------------------------------------------------------------------------


def upload(*rows, models=None):
    head = "run_id,model_key,accelerator,num_gpus,seq_len,micro_batch,global_batch,tp,pp"
    text = "\n".join([f"{head},tokens_per_s_per_gpu,peak_mem_gib", *rows])
    return own.report_of_upload(text.encode(), models, name="mine.csv")


GOOD = "a,llama3.1-8b,H100-80GB-SXM,8,8192,1,16,1,1,5000,60"


def test_the_example_is_a_file_without_a_mistake():
    report = own.report_of_upload(own.example_csv(), None, name="example.csv")
    assert report.offences == ()
    assert report.file_notes == ()
    assert report.throughput.overall.n == 2


def test_models_are_uploaded_or_shipped_or_presets():
    model = b"model_key,layers,hidden,vocab\nmine,32,4096,32000\nllama2-7b,2048,x,1\n"
    mine = GOOD.replace("a,llama3.1-8b", "b,mine")
    shipped, broken = GOOD.replace("llama3.1-8b", "llama2-7b"), GOOD.replace("llama3.1-8b", "mine")
    assert [o.reason for o in upload(GOOD, mine, models=model).offences] == []
    assert [o.reason for o in upload(shipped).offences] == []
    assert "Unknown model 'mine'" in upload(broken).offences[0].reason
    assert "hidden='x' is not a number" in upload(shipped, models=model).offences[0].reason


def test_offending_rows_are_named_and_the_others_used():
    report = upload(GOOD, GOOD, GOOD.replace("a,", "c,").replace("16,1,1", "16,3,1"))
    frame = tables.named_rows(report).frame()
    assert frame["Line"].tolist() == [3, 4]
    assert "already the run of line 2" in frame["Reason"][0]
    assert "does not divide" in frame["Reason"][1]
    runs = tables.own_runs(report).frame()
    assert runs["Run"].tolist() == ["a"]
    assert runs[tables.RATIO].tolist() == pytest.approx(
        [5000 / runs["Forecast (tokens/s per GPU)"][0]]
    )


def test_an_upload_is_bounded_before_it_is_read():
    with pytest.raises(RunsError, match="larger than 2 MB"):
        own.report_of_upload(b"run_id\n" + b"a" * own.MAX_BYTES, None, name="big.csv")
    with pytest.raises(RunsError, match="more than 5,000 rows"):
        own.report_of_upload(b"run_id\n" + b"a\n" * 5_100, None, name="long.csv")
    with pytest.raises(RunsError, match="the file of models' is larger than 2 MB"):
        own.report_of_upload(own.example_csv(), b"x" * (own.MAX_BYTES + 1), name="x.csv")


@pytest.mark.parametrize("content", [b"", b"\x00\x01", b"{}", b"a,b\n1,2\n", b"\xff\xfe"])
def test_what_is_no_table_of_runs_is_one_sentence(content):
    with pytest.raises(RunsError) as e:
        own.report_of_upload(content, None, name="x.csv")
    assert str(e.value).startswith("'x.csv' ")
