"""Checks of question and answer: green, red and grey histories."""

from __future__ import annotations

import pytest

from histories import Story, answer, plain_turn, said, user

PLAN = {"model": {"t1": [[{"text": "one "}, "done"]], "t2": [[{"text": "two "}, "done"]]}}
U1, U2 = user(1), user(2)
A1, A2 = answer("one ", "a1"), answer("two ", "a2")


def two_turns(*final: dict, texts: tuple[str, str] = ("one ", "two "), facts: bool = False) -> Story:
    story = Story(plan=PLAN, facts=facts)
    a = story.open("a")
    plain_turn(story, [a], 1, texts[0])
    plain_turn(story, [a], 2, texts[1])
    return story.epilogue(*final)


# ---- WIRE-62 ----------------------------------------------------------------------------------


def test_every_prompt_ends_with_its_own_question() -> None:
    assert said("WIRE-62", two_turns(U1, A1, U2, A2)) == "holds"


def test_without_a_model_call_nothing_is_known_of_prompts() -> None:
    story = Story(plan=PLAN)
    story.open("a")
    assert said("WIRE-62", story.epilogue()) == "nothing"


def test_a_first_prompt_that_ends_with_an_echoed_answer_is_broken() -> None:
    story = Story(plan=PLAN)
    story.send(story.open("a"))
    story.call(
        messages=[{"role": "user", "content": "[[case/t1]]"}, {"role": "assistant", "content": "so far"}]
    )
    story.call_ends()
    assert said("WIRE-62", story.epilogue(U1, A1)) == "broken"


def test_a_later_prompt_may_end_with_the_partial_and_an_instruction() -> None:
    story = Story(plan=PLAN)
    a = story.open("a")
    story.send(a)
    story.call()
    story.start(a)
    story.kill(a, calls=[1])
    story.restart()
    story.call(
        messages=[{"role": "user", "content": "[[case/t1]]"}, {"role": "assistant", "content": "one "}]
    )
    story.call_ends()
    assert said("WIRE-62", story.epilogue(U1, A1)) == "holds"


def test_an_answer_without_a_call_of_its_own_is_broken() -> None:
    story = Story(plan=PLAN)
    a = story.open("a")
    plain_turn(story, [a], 1, "one ")
    story.send(a, 2)
    story.start(a, "r2", "a2")
    story.words(a, "well ", request="r2")
    story.terminal(a, "r2", messages=["u2"])
    assert said("WIRE-62", story.epilogue(U1, A1, U2, A2)) == "broken"


def test_what_was_said_to_another_question_is_broken() -> None:
    assert said("WIRE-62", two_turns(U1, A1, U2, A2, texts=("two ", "two "))) == "broken"


# ---- WIRE-96 ----------------------------------------------------------------------------------


def test_one_turn_after_the_other_holds() -> None:
    assert said("WIRE-96", two_turns(U1, A1, U2, A2)) == "holds"


def test_one_turn_alone_shows_nothing_of_order() -> None:
    story = Story(plan=PLAN)
    plain_turn(story, [story.open("a")])
    assert said("WIRE-96", story.epilogue(U1, A1)) == "nothing"


@pytest.mark.parametrize(("replay", "verdict"), [(False, "broken"), (True, "holds")])
def test_chunks_that_interleave_are_broken_unless_replayed(replay: bool, verdict: str) -> None:
    story = Story(plan=PLAN)
    a = story.open("a")
    story.start(a, "r1")
    story.start(a, "r2", "a2")
    story.words(a, "one ", request="r1", replay=replay)
    assert said("WIRE-96", story.epilogue()) == verdict


def test_an_id_that_ended_and_runs_anew_does_not_interleave() -> None:
    story = Story(plan=PLAN)
    a = story.open("a")
    story.start(a, "r1")
    story.terminal(a, "r1")
    story.start(a, "r2", "a2")
    story.start(a, "r1")
    assert said("WIRE-96", story.epilogue()) == "holds"


# ---- KIT-09 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("final", "reference", "others"),
    [
        ((U1, A1, U2, A2), "holds", "holds"),
        ((U1, U2, A1, A2), "broken", "holds"),  # WIRE-61: only the reference puts it in between
        ((U1, U2, A2, A1), "broken", "broken"),
        ((A1, U1, U2, A2), "broken", "broken"),
        ((U1, U2, answer("one two ", "a1")), "broken", "broken"),
        ((U1, A2, U2, A1), "broken", "broken"),
        ((U1, U2), "nothing", "nothing"),
    ],
)
def test_places_of_answers(final: tuple[dict, ...], reference: str, others: str) -> None:
    assert said("KIT-09", two_turns(*final, facts=True)) == reference
    assert said("KIT-09", two_turns(*final)) == others
