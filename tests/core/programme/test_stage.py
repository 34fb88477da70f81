"""Stages of a programme as text and as flat keys of a link: what reads back, what is refused."""

import pytest

from core.errors import ScenarioError
from core.model.presets import preset
from core.model.transformer import total_params
from core.programme import stage
from core.programme.scaled import scaled
from core.programme.stage import Stage, stage_of
from core.programme.tokens import ramp_steps, tokens_of_stages
from core.scenario import Scenario

WHOLE = (
    "ablations,share=5%,count=12,scale=0.125;main,tokens=15T,batch=0:512/252M:1024;"
    "long,share=5%,of=main,seq_len=128k,cp=16,gap_hours=6"
)


def test_a_link_writes_stages_as_flat_keys_and_reopens_them():
    scenario = Scenario.parse({"stages": WHOLE})
    query = scenario.to_query()
    assert query["s2.global_batch_size"] == "0:512/252000000:1024"
    assert query["s3.seq_len"] == "128k"
    assert Scenario.from_query(query) == (scenario, [])
    assert Scenario.from_query({"stages": WHOLE}) == (scenario, [])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (";".join(f"r{n}" for n in range(9)), "9 stages are given and a programme has at most 8"),
        ("a,tokens=0", "num_tokens='0' should be above 0"),
        ("a,tokens=-5", "should be above 0"),
        ("a,batch=0:512/9:256", "a batch of 256 follows one of 512"),
        ("a,batch=0:5/9:6/9:7", "token 9 comes after 9"),
        ("a,batch=5:5/9:6", "starts at token 5, not at 0"),
        ("m;a,share=5%,of=a", "the share of 'a' refers to itself"),
        ("m;a,share=5%,of=b;b,share=1,of=a", "(a of b of a)"),
        ("main;a,share=5%,of=mian", "'main' is probably meant"),
        ("a,share=5%", "every stage is a share"),
        ("a,tokens=1,share=5%", "leave one of them out"),
        ("a,seqlen=5", "seq_len is probably meant"),
        ("a;a", "two stages are called 'a'"),
        ("a,tokens=" + "9" * 500, "at most 400 characters"),
    ],
)
def test_a_mistake_is_one_sentence(text, says):
    with pytest.raises(ScenarioError) as e:
        Scenario.parse({"stages": text})
    assert says in str(e.value)
    assert str(e.value).endswith(".")


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"s9.tokens": "5", "s1.name": "a"}, "s9. is given"),
        ({"s1.name": "a", "s3.name": "b"}, "nothing of s2."),
        ({"s1.name": "a,b"}, "holds a comma"),
        ({f"s{n}.name": "x" * 4000 for n in range(1, 9)}, "longer than 16384"),
    ],
)
def test_a_link_with_wrong_stages_opens_without_them_and_says_so(query, says):
    scenario, notes = Scenario.from_query({"seq_len": "4k", **query})
    assert scenario.stages == ()
    assert len(notes) == 1
    assert says in notes[0]


def test_shares_are_of_the_largest_stage_or_of_the_one_they_name():
    stages = [stage_of(t) for t in ("a", "b", "c,share=10%", "d,share=50%,of=c")]
    assert tokens_of_stages(stages, [1e9, 4e9, 0, 0]) == [1e9, 4e9, 4e8, 2e8]


def test_a_ramp_longer_than_its_stage_is_refused():
    ramp = stage.ramp_of("0:512/1T:1024")
    assert ramp_steps(ramp, num_tokens=3e12, name="a") == [(1e12, 512), (2e12, 1024)]
    with pytest.raises(ScenarioError, match="'a' reaches token 1,000,000,000,000"):
        ramp_steps(ramp, num_tokens=1e12, name="a")


@pytest.mark.parametrize("name", ["llama3.1-8b", "llama3.1-70b", "deepseek-v3"])
@pytest.mark.parametrize("share", [0.125, 0.5])
def test_a_scaled_model_has_about_that_share_of_the_parameters(name, share):
    model = preset(name).transformer
    found = float(total_params(scaled(model, share=share)) / total_params(model))
    assert found == pytest.approx(share, rel=0.35)


def test_what_is_left_out_is_not_written():
    assert stage.text_of(Stage(name="a")) == "name=a"
