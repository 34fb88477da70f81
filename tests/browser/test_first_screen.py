"""What somebody reads who opens the page cold: the answer, and few words around it."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser

# Of the page before there was one recommended plan, counted by the script below.
WORDS_BEFORE = {(1440, 900): 222, (390, 844): 89}
VISIBLE_WORDS = """() => {
    const found = []
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) {
        const parent = texts.currentNode.parentElement, style = getComputedStyle(parent)
        if (["SCRIPT", "STYLE", "NOSCRIPT"].includes(parent.tagName)) continue
        if (style.visibility == "hidden" || style.opacity == 0) continue
        if (parent.closest('[class*="_for_screen_readers"]')) continue  // heard, not seen
        const range = document.createRange()
        range.selectNodeContents(texts.currentNode)
        const box = range.getBoundingClientRect()
        const isIn = box.width >= 1 && box.height >= 1 && box.top < innerHeight && box.bottom > 0
                     && box.left < innerWidth && box.right > 0
        if (isIn) found.push(...texts.currentNode.textContent.trim().split(/\\s+/).filter(Boolean))
    }
    return found
}"""


@pytest.mark.parametrize("size", WORDS_BEFORE)
def test_the_first_screen_answers_in_fewer_words_than_before(new_user, size, keep_picture):
    user = new_user(viewport=dict(zip(("width", "height"), size, strict=True)))
    user.open()
    keep_picture(user, f"first_screen_{size[0]}")
    words = user.page.evaluate(VISIBLE_WORDS)
    assert 50 < len(words) < WORDS_BEFORE[size], " ".join(words)
    read = " ".join(words)
    assert re.search(r"\$[\d,]+ expected \(P10-P90 \$\S+-\$\S+\)", read)  # what, how sure
    assert re.search(r"[\d.]+ (days|h) \(P90 [\d.]+ (days|h)\) on \d+ x \w+", read)  # when, where
    assert "chance to be late" in read  # what could go wrong
    assert "Recommended" in read
    assert "On time" in read
