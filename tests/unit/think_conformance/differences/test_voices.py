"""What is compared of a case, and that timing does not get into it."""

from __future__ import annotations

from collections.abc import Iterable

from histories import Story, answer, plain_turn, user
from think_conformance.differences.labels import Label
from think_conformance.differences.voices import LONGEST, voices
from think_conformance.wire.frames import ChatRecovering, Identity, StreamPending

LIVE_TURN = ["start", "text-delta", "transcript up to assistant", "terminal completed"]


def said(story: Story, what: str, whose: str) -> list[str]:
    return [str(label) for label in voices(story.history)[what, whose].labels]  # type: ignore[index]


def resumed(*, replayed: int) -> Story:
    """A newcomer who gets so many of four words as a replay, and the rest live."""
    story = Story()
    name, late = story.open("a"), story.open("b")
    story.send(name)
    story.offer(late)
    story.ack(late)
    story.start(late, replay=True)
    words = ["w1 ", "w2 ", "w3 ", "w4 "]
    story.words(late, *words[:replayed], replay=True)
    story.complete_replay(late)
    story.words(late, *words[replayed:], first=1 + replayed)
    story.transcript(late, user(), answer("w1 w2 w3 w4 "))
    story.terminal(late)
    return story


def test_a_turn_is_told_frame_by_frame_with_words_in_a_row_as_one() -> None:
    story = Story()
    names = [story.open("a"), story.open("b")]
    story.get(names, Identity(name="n", agent="a"))
    plain_turn(story, names)
    assert said(story, "frames", "a.1") == LIVE_TURN
    assert said(story, "frames", "b.1") == ["transcript up to user", *LIVE_TURN]
    assert said(story, "connect", "b.1") == ["identity"]
    assert said(story, "prompts", "t1") == ["call", "the turn's own user"]


def test_how_much_came_as_a_replay_is_timing_and_that_it_was_whole_is_not() -> None:
    told = [said(resumed(replayed=count), "frames", "b.1") for count in range(5)]
    assert told == [["offer", "whole replay", *LIVE_TURN]] * 5


def test_a_second_replay_is_told_as_one() -> None:
    story = Story()
    name = story.open()
    story.send(name)
    for _ in range(2):
        story.start(name, replay=True)
        story.words(name, "w1 ", replay=True)
    assert said(story, "frames", name) == ["replay", "start", "text-delta"] * 2


def test_a_replay_that_ended_with_its_request_does_not_go_on_in_the_next() -> None:
    story = Story()
    name = story.open()
    story.send(name)
    for _ in range(2):
        story.start(name, replay=True)
        story.failure(name, done=True)
    end = "terminal without outcome, error"
    assert said(story, "frames", name) == ["replay", "start", end] * 2


def test_requests_that_no_client_sent_are_successors() -> None:
    story = Story()
    name = story.open()
    story.send(name)
    story.get(name, ChatRecovering(recovering=True, id="r1"))
    story.start(name, "a0b1", continuation=True)
    story.terminal(name, "a0b1", continuation=True)
    told = ["recovering true", "start, continuation of a successor"]
    assert said(story, "frames", name) == [*told, "terminal completed, continuation of a successor"]


def test_answers_to_probes_have_a_voice_of_their_own() -> None:
    story = Story()
    name = story.open()
    story.send(name)
    story.pending(name)
    story.probe(name)
    story.pending(name, probe="p1")
    story.get(name, StreamPending(id="r1"))
    assert said(story, "probe", name) == ["pending"]
    assert said(story, "frames", name) == ["pending", "pending"]


def test_how_often_the_observer_probes_is_timing() -> None:
    def probed(times: int) -> Story:
        story = Story()
        story.begin()
        name = story.observe()
        for number in range(times):
            story.pending(name, probe=f"epilogue-{number}")
        story.idle(name, "epilogue-9")
        return story.end(name)

    assert said(probed(3), "probe", "observer.1") == said(probed(1), "probe", "observer.1")


def test_an_ack_after_the_end_has_its_own_answer() -> None:
    story = Story()
    name = story.open()
    plain_turn(story, [name])
    story.epilogue(user(), answer("w1 "), acks=["r1"])
    assert said(story, "late ack", "r1") == ["terminal without outcome, replay"]
    assert said(story, "frames", "observer.1") == []
    assert said(story, "stored", "") == ["user [text]", "assistant [text (done)]"]


def test_into_how_many_pieces_a_crash_cut_a_text_is_timing() -> None:
    def kept(*texts: str) -> list[str]:
        parts = [p for text in texts for p in ({"type": "step-start"}, answer(text)["parts"][0])]
        story = Story()
        story.epilogue(user(), {**answer(""), "parts": parts})
        return said(story, "stored", "")

    assert kept("w1 ", "w2 ", "w3 ") == kept("w1 w2 w3 ") == ["user [text]", "assistant [text (done)]"]


def met(moment: str) -> object:
    """What meets a newcomer at a moment of a turn."""
    story = Story()
    name = story.open()
    story.send(name)
    if moment != "before the model":
        story.call()
    if moment in ("after the model", "after the end"):
        story.call_ends()
    if moment == "after the end":
        story.terminal(name)
    if moment == "after a crash":
        story.kill(name, calls=[1])
        story.restart()
    late = story.open("b")
    return voices(story.history)["frames", late].met


def test_a_newcomer_meets_the_state_of_things() -> None:
    clear = [met(moment) for moment in ("before the model", "during the model", "after the end")]
    assert None not in clear
    assert len({str(state) for state in clear}) == 3


def test_what_a_newcomer_meets_between_calls_or_after_a_crash_cannot_be_told() -> None:
    assert met("after the model") is None
    assert met("after a crash") is None


def test_what_a_newcomer_meets_is_unclear_when_it_changes_while_it_dials() -> None:
    story = Story()
    name = story.open()
    story.send(name)
    ids = {"client": "b", "connection": "b.1", "epoch": 1}
    story.record("client", "dial", ids)
    story.call()
    story.record("client", "open", ids, {})
    assert voices(story.history)["frames", "b.1"].met is None


def test_what_the_observer_meets_while_a_turn_goes_on_is_timing() -> None:
    story = Story()
    story.send(story.open())
    story.begin()
    story.observe()
    assert voices(story.history)["frames", "observer.1"].met is None


def test_a_connection_that_ended_early_is_not_whole() -> None:
    story = Story()
    first, second = story.open("a"), story.open("b")
    story.close(first)
    story.epilogue()
    story.close(second)
    found = voices(story.history)
    assert (found["frames", first].whole, found["frames", second].whole) == (False, True)


def test_what_a_target_sends_is_bounded_and_never_raises() -> None:
    story = Story()
    name = story.open()
    strange: Iterable[object] = [
        {"frame": {"type": 7, "id": ["x"]}},
        {"frame": {"type": "x" * 9000}},
        {"frame": {"type": "cf_agent_chat_messages", "messages": [7, {"role": 7}]}},
        {"frame": {"type": "cf_agent_use_chat_response", "id": "r", "body": "{", "seq": "x", "replay": 1}},
        {"text": "hello"},
        None,
    ]
    for payload in strange:
        story.record("client", "frame-in", {"client": "a", "connection": name, "epoch": 1}, payload)
    labels = voices(story.history)["frames", name].labels
    assert [label.text for label in labels[-2:]] == ["no JSON object"] * 2
    assert max(len(label.text) for label in labels) < 100
    for _ in range(LONGEST):
        story.transcript(name, user())
    assert len(voices(story.history)["frames", name].labels) == LONGEST
    assert Label("x", record=1) == Label("x", record=2)
