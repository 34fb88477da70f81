"""The one walk through a real browser that `make test` does: open, edit, share, go back."""

import pytest

pytestmark = pytest.mark.journey

# Looks at every frame in which old and new stand together: how many there were, and how much of the
# old was as bright as the new.
MIXED = """() => { window.mixed = window.bright = 0;
  const look = () => {
    const all = [...document.querySelectorAll('[data-testid="stMain"] [data-stale]')];
    const old = all.filter(e => e.dataset.stale === 'true');
    if (old.length && old.length < all.length) {
      window.mixed += 1;
      window.bright += old.filter(e => getComputedStyle(e).opacity > 0.5).length;
    }
    requestAnimationFrame(look);
  };
  look(); }"""


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
    ann.page.evaluate(MIXED)
    ann.back()
    assert ann.value("Sequence length") == "8192"
    ann.back()
    assert ann.value("Training tokens") == "100B"
    assert ann.headlines() == first
    ann.forward()
    ann.forward()
    assert ann.headlines() == edited
    assert ann.page.evaluate("() => [window.mixed > 0, window.bright]") == [True, 0]
    ann.page.reload()
    ann.settle()
    assert ann.headlines() == edited
    assert ann.value("Training tokens") == "2T"
