"""The one walk through a real browser that `make test` does: open, edit, share, go back."""

import pytest

pytestmark = pytest.mark.journey


def test_a_link_shows_another_person_the_same_numbers(new_user):
    ann = new_user()
    ann.open()
    assert len(ann.headlines()) == 5
    first = ann.headlines()

    ann.type("Training tokens", "2T")
    assert "num_tokens=2e12" in ann.query()
    assert ann.headlines() != first
    ann.type("Sequence length", "4096")
    assert "seq_len=4096" in ann.query()
    assert ann.table()

    bob = new_user()
    bob.page.goto(ann.link())
    bob.settle()
    assert bob.headlines() == ann.headlines()
    assert bob.table() == ann.table()
    assert bob.sentence() == ann.sentence()
    assert bob.value("Training tokens") == "2T"
    assert bob.notes() == []

    edited = ann.headlines()
    ann.back()
    assert ann.value("Sequence length") == "8192"
    ann.back()
    assert ann.value("Training tokens") == "100B"
    assert ann.headlines() == first
    ann.forward()
    ann.forward()
    assert ann.headlines() == edited
    ann.page.reload()
    ann.settle()
    assert ann.headlines() == edited
    assert ann.value("Training tokens") == "2T"
