"""Each kind of block on a page: its text is there as it is written, never as markup."""

from streamlit.testing.v1 import AppTest


def script():
    from app.document.blocks import Bullets, Copied, Figure, Paragraph
    from app.document.page import draw_blocks, draw_turned
    from app.document.table import plain

    table = plain("Sizes", ("Part", "GiB"), [("*weights*", "14"), ("states", "84")], numeric=(1,))
    draw_blocks(
        (
            Paragraph("[x](javascript:1)"),
            Paragraph("the answer", strong=True),
            Bullets(("first <b>", "second"), "Why"),
            table,
            Figure(name="f", alt="a bar", caption="Bars", spec={}, numbers=table),
            Copied(label="Link", text="?v=1&model=x"),
        )
    )
    draw_turned(table, "In")


def test_every_block_is_drawn_as_it_is_written():
    page = AppTest.from_function(script).run()
    assert not page.exception
    sentence, answer, listed = (m.value for m in page.markdown)
    assert "[x](" not in sentence
    assert answer == "**the answer**"
    assert listed.startswith("**Why**\n\n- first ")
    assert "<b>" not in listed
    assert [c.value for c in page.code] == ["?v=1&model=x"]
    assert [c.value for c in page.caption] == ["Link"]
    whole, numbers, turned = (t.value for t in page.table)
    assert list(whole.columns) == ["Part", "GiB"]
    assert "*weights*" not in set(whole["Part"])  # its stars are escaped
    assert numbers.equals(whole)
    assert list(turned.loc["GiB"]) == ["14", "84"]
