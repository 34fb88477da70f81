"""A button that copies a text to the clipboard.

The text is passed as data and never becomes markup. Where the browser denies access to the
clipboard (plain HTTP from another machine), the text is selected in a temporary field and copied
from there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import streamlit as st

HTML = '<button type="button"></button><span role="status"></span>'
CSS = """
:host, div { display: flex; align-items: center; }
button {
  font: inherit; font-size: 0.875rem; cursor: pointer; min-height: 2.5rem; padding: 0.25rem 0.75rem;
  color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius, 0.5rem);
}
button:hover { border-color: var(--st-primary-color); }
button:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 2px; }
span { margin-left: 0.75rem; font-size: 0.875rem; color: var(--st-text-color); }
"""
JS = """
function copyBySelection(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.style.position = "fixed";
  field.style.opacity = "0";
  document.body.appendChild(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button");
  const status = parentElement.querySelector("span");
  button.textContent = data.label;
  button.onclick = async () => {
    let done = false;
    try {
      await navigator.clipboard.writeText(data.text);
      done = true;
    } catch {
      done = copyBySelection(data.text);
      button.focus();
    }
    status.textContent = done ? "Copied" : "Not copied: select the text above";
    setTimeout(() => { status.textContent = ""; }, 4000);
  };
}
"""


@cache
def _component() -> Any:
    return st.components.v2.component("runcast_copy_button", html=HTML, css=CSS, js=JS)


def draw(label: str, text: str, *, key: str) -> None:
    """Draw the button."""
    _component()(key=key, data={"label": label, "text": text}, width="content")
