"""The fields of frames, over a whole run."""

from __future__ import annotations

from histories import Story, user
from think_conformance.differences.shapes import shapes
from think_conformance.wire.frames import McpServers


def test_fields_are_found_wherever_they_show_first() -> None:
    story = Story()
    name = story.open()
    index = story.transcript(name, {**user(), "metadata": {"channel": "web"}})
    chunk = story.chunk(name, {"type": "finish", "finishReason": "stop"}, seq=3)
    found = shapes([("one", Story().history), ("two", story.history)])
    assert found["user message"]["metadata.channel (text)"] == ("two", index)
    assert found["text part"]["text (text)"] == ("two", index)
    assert found["live chunk"]["seq (number)"] == ("two", chunk)
    assert found["finish chunk"]["finishReason (stop)"] == ("two", chunk)


def test_what_belongs_to_the_application_is_not_looked_into() -> None:
    story = Story()
    story.get(story.open(), McpServers(mcp={"tools": []}))
    assert set(shapes([("one", story.history)])["mcp_servers"]) == {
        "type (text)",
        "mcp (object)",
    }


def test_objects_are_looked_into_so_deep_and_no_deeper() -> None:
    nested: dict[str, object] = {"deep": 1}
    for _ in range(50):
        nested = {"deep": nested}
    story = Story()
    story.chunk(story.open(), {"type": "start", "messageMetadata": nested})
    assert len(shapes([("one", story.history)])["start chunk"]) == 5
