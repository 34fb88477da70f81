"""When the tests of the browser call a page quiet: not while anything was not answered."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.support.page_traffic import Traffic


class Line:
    """A page and its websocket: what the test says is sent and received."""

    def __init__(self):
        self.does, self.traffic = {}, Traffic()
        self.traffic.watch(self)
        self.does["websocket"](self)

    def on(self, event, action):
        self.does[event] = action

    def edits(self):
        message = BackMsg()
        message.rerun_script.SetInParent()
        self.does["framesent"](message.SerializeToString())

    def chooses_a_file(self):
        message = BackMsg()
        message.file_urls_request.SetInParent()
        self.does["framesent"](message.SerializeToString())

    def hears(self, kind):
        message = ForwardMsg()
        if kind == "script_finished":
            message.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
        else:
            getattr(message, kind).SetInParent()
        self.does["framereceived"](message.SerializeToString())

    def requests(self, event, method="PUT"):
        self.does[event](SimpleNamespace(method=method))


@pytest.fixture
def line():
    return Line()


def test_an_edit_is_answered_when_its_run_has_ended(line):
    assert line.traffic.is_quiet()
    line.edits()
    assert not line.traffic.is_quiet()
    line.hears("new_session")
    assert not line.traffic.is_quiet()
    line.hears("script_finished")
    assert line.traffic.is_quiet()


def test_the_end_of_an_earlier_run_does_not_answer_a_later_edit(line):
    line.edits()
    line.hears("new_session")
    line.edits()
    line.hears("script_finished")
    assert not line.traffic.is_quiet()


def test_runs_are_counted_from_the_last_connection_on(line):
    for ended in (1, 2):
        line.hears("new_session")
        line.hears("script_finished")
        assert line.traffic.ended == ended
    line.does["websocket"](line)
    assert line.traffic.ended == 0


def test_an_upload_is_answered_by_the_run_that_it_leads_to(line):
    line.chooses_a_file()
    assert not line.traffic.is_quiet()
    line.hears("file_urls_response")
    line.requests("request")
    assert not line.traffic.is_quiet()
    line.edits()
    line.hears("new_session")
    line.hears("script_finished")
    assert line.traffic.is_quiet()


def test_a_failed_upload_is_waited_for_no_longer_and_a_download_never(line):
    line.requests("request", "GET")
    assert line.traffic.is_quiet()
    line.requests("request")
    line.requests("requestfailed")
    assert line.traffic.is_quiet()
