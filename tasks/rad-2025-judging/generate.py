"""Makes the demonstration data of this task, the same bytes every time.

    python tasks/rad-2025-judging/generate.py SIMULATIONS OUT

SIMULATIONS is the real file of two debates (see README.md). Claims and arguments below were written for this task. Each
generated answer is made in one of nine ways, and the way decides its labels: nobody judged them. The labels of the two
real debates are the maintainers' own.
"""

# ruff: noqa: S311

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

SEED = 2025
CRITERIA = ("quantity", "quality", "relation", "manner")

# Claim, why (the user's side), why not (the system's side).
TOPICS = [
    (
        "Cities should ban private cars from their centres.",
        ["Without cars the air in a centre is cleaner.", "Streets without cars leave room for trees and tables.",
         "Walking and cycling are safer where no cars drive.", "Buses are faster when no cars stand in their way."],
        ["Night nurses depend on cars because buses do not run at night.", "Shops in a centre lose customers who come from far by car.",
         "People who can hardly walk need a car at the door.", "Cars that are banned from the centre fill the streets around it."],
    ),
    (
        "Schools should not give homework.",
        ["Children need their afternoons to play and rest.", "Homework widens the gap between those who get help at home and those who do not.",
         "Tired children learn little from one more exercise.", "Teachers could prepare lessons instead of marking homework."],
        ["Practice at home makes what was learned last.", "Homework shows parents what their children learn.",
         "Pupils learn to plan their own time by doing homework.", "Without homework, schools would need longer days."],
    ),
    (
        "Zoos should be closed.",
        ["Large animals suffer in small enclosures.", "A film shows children more of wild animals than a cage does.",
         "Animals bred in zoos are rarely released.", "Money spent on zoos could protect forests instead."],
        ["Several species survived only because zoos bred them.", "Zoos pay for the protection of animals in the wild.",
         "Children who meet animals learn to care about them.", "Zoos let scientists study diseases that threaten wild animals."],
    ),
    (
        "Everybody should eat less meat.",
        ["Raising cattle takes land that could feed more people with plants.", "Eating less red meat lowers the risk of heart disease.",
         "Fewer animals would have to live in crowded barns.", "Cattle give off a large share of agriculture's methane."],
        ["Meat gives iron and vitamins that are hard to get otherwise.", "Much pasture is too steep or dry to grow crops on.",
         "Farmers in poor regions live on their animals.", "A tax on meat would hit people with low incomes most."],
    ),
    (
        "Public libraries are a waste of money.",
        ["Most people look things up on their phones.", "Many libraries stand empty on weekdays.",
         "Electronic books cost less to lend than printed ones.", "The money would do more good in schools."],
        ["Libraries are the only quiet place to study for many pupils.", "Libraries lend books to people who cannot buy them.",
         "Librarians help people find work and fill in forms.", "A library brings together neighbours who would not meet otherwise."],
    ),
    (
        "Working from home should be the rule.",
        ["People who need not commute have an hour more every day.", "Offices cost companies rent that could be pay.",
         "Those who care for relatives can keep their jobs at home.", "It is easier to concentrate without talk around you."],
        ["New colleagues learn slowest when nobody sits beside them.", "Many homes have no room where one can work.",
         "People who work at home find it hard to stop in the evening.", "Ideas often come up in the corridor, not in a meeting."],
    ),
    (
        "Tourists should pay to enter old towns.",
        ["Crowds wear out streets that were built for few.", "The money would pay for cleaning and repairs.",
         "Residents cannot find flats because visitors rent them.", "A fee would spread visitors over the year."],
        ["A fee keeps out families with little money.", "Shops in old towns live on visitors who come for an hour.",
         "Gates turn a town into a museum.", "A fee high enough to keep crowds away would also keep relatives of residents away."],
    ),
    (
        "Voting should start at sixteen.",
        ["People of sixteen may work and pay taxes.", "Those who vote early keep voting all their lives.",
         "Decisions on the climate concern the young most.", "Schools can prepare pupils for their first election."],
        ["At sixteen few people have paid their own rent or bills.", "Parents and teachers can sway how the young vote.",
         "Few countries let people of sixteen sign contracts, and a vote binds everybody.", "Turnout among the youngest voters is the lowest."],
    ),
    (
        "Supermarkets should give away all unsold food.",
        ["Edible food ends up in the bin while people are hungry.", "Growing food that nobody eats wastes water.",
         "Shops save the cost of throwing food away.", "Charities reach people whom the state does not."],
        ["Charities cannot cool and carry all that food.", "Shops would be liable if old food made people ill.",
         "Giving food away hides that benefits are too low.", "Better orders would avoid the waste in the first place."],
    ),
    (
        "Children should learn to program in primary school.",
        ["Programming teaches to split a problem into steps.", "Everybody meets computers at work one day.",
         "Girls and boys start equal when they start early.", "A small program shows at once whether an idea works."],
        ["Children who cannot read well yet need the hours for reading.", "Languages that children learn today are gone when they work.",
         "Few primary schools have teachers who can program.", "Small children already spend too much time at screens."],
    ),
    (
        "Advertising for sweets should be forbidden.",
        ["Children cannot tell advertising from advice.", "Many children weigh more than is healthy.",
         "Parents are worn down by what their children see.", "Other foods would be advertised instead."],
        ["Parents, not posters, decide what is bought.", "Advertising pays for films that children like.",
         "A ban on sweets invites bans on much else.", "Children eat as many sweets in places without advertising."],
    ),
    (
        "Space travel is not worth its cost.",
        ["The money would feed millions of people.", "Robots explore planets for a tenth of the price.",
         "Rockets harm the upper air.", "Few of the promised inventions came true."],
        ["Satellites warn of storms and save lives.", "Space agencies train engineers who later work everywhere.",
         "Watching the climate from orbit needs space travel.", "Countries that explore together fight less."],
    ),
    (
        "Shops should stay closed on Sundays.",
        ["Families need one day that all of them have off.", "Small shops cannot afford staff on seven days.",
         "A quiet day is good for everybody.", "Nobody runs out of bread in one day."],
        ["Nurses and drivers work on Sundays, and shop when others rest.", "Students earn their rent on Sundays.",
         "Orders go to the internet when shops are closed.", "Nobody who likes Sundays quiet has to go shopping."],
    ),
    (
        "Museums should be free.",
        ["Art that was paid for by all should be seen by all.", "More visitors come when entry is free.",
         "Pupils return with their parents when it costs nothing.", "Collecting small fees costs almost as much as it brings."],
        ["Fees pay for the guards and the light.", "Visitors from abroad would pay, and pay no taxes here.",
         "What costs nothing is often thought worth nothing.", "Free entry mostly serves those who come anyway."],
    ),
]  # fmt: skip
OPENINGS = (
    "In my view the matter is clear. {}",
    "I have thought about this for long: {}",
    "Let me say what I believe. {}",
)
FOLLOWS = (
    "That does not convince me. {}",
    "You leave something out: {}",
    "But consider this. {}",
    "I see it differently. {}",
)
FILLER = (
    "Well, to be quite honest with you, and I do not say this lightly, there are of course, as everybody will surely "
    "agree, many things that one could say about all this, on the one hand and on the other hand, and in the end, "
    "when all is said and done, it somehow comes down, more or less, to something like the following, namely: "
)
# Ways of answering: weight, and the labels that follow (None: "don't know").
STYLES: dict[str, tuple[int, tuple[int | None, ...]]] = {
    "verbatim": (3, (1, 1, 1, 1)),
    "framed": (4, (1, 1, 1, 1)),
    "two attacks": (3, (0, 1, 1, 1)),
    "unsupported": (9, (1, 0, 1, 1)),
    "off topic": (3, (0, 1, 0, 1)),
    "agrees": (2, (0, 1, 0, 1)),
    "rambles": (4, (1, 1, 1, 0)),
    "no argument": (3, (0, None, 1, 1)),
    "vague": (3, (1, 0, 0, 0)),
}
# The two real debates, judged by the maintainers: answers are arguments word for word, mostly about something else.
REAL = [
    [(0, 1, 0, 0), (0, 1, 0, 1), (0, 1, 0, 0)],
    [(0, 1, 0, 1), (1, 1, 0, 1), (1, 1, 1, 1)],
]


def argument(topic: int, side: int, place: int, key: int = 1) -> dict[str, Any]:
    """An argument as the index has it: ``side`` 1 is the user's, 2 the system's."""
    claim = TOPICS[topic][0]
    stance = {"supports": claim} if side == 1 else {"attacks": claim}
    return {"id": f"demo{topic + 1}.{'pc'[side - 1]}{place + 1}", "text": TOPICS[topic][side][place], "topic": claim, **stance, "key": key}  # fmt: skip


def lower(text: str) -> str:
    return text[0].lower() + text[1:]


def answer(style: str, topic: int, turn: int, draw: random.Random) -> tuple[str, list[dict[str, Any]]]:
    """The words of an answer, and its arguments."""
    place = turn % 4
    ours = argument(topic, 2, place)
    other = draw.choice([n for n in range(len(TOPICS)) if n != topic])
    text = str(ours["text"])
    if style == "verbatim":
        return text, [ours]
    if style == "framed":
        return f"I have to disagree, because {lower(text)}", [ours]
    if style == "two attacks":
        second = argument(topic, 2, (place + 1) % 4, 2)
        return f"{text} Besides, {lower(str(second['text']))}", [ours, second]
    if style == "unsupported":
        return f"I have to disagree, because {lower(text)}", [argument(other, 2, place)]
    if style == "off topic":
        found = argument(other, 2, place)
        return str(found["text"]), [found]
    if style == "agrees":
        found = argument(topic, 1, place)
        return f"You are right, {lower(str(found['text']))}", [found]
    if style == "rambles":
        return FILLER + lower(text), [ours]
    if style == "no argument":
        return "I hear you, but I cannot follow you there at all.", []
    return "It may be so, or it may be otherwise; it depends on what one means by it, perhaps.", [ours]


def debate(
    number: int, topic: int, draw: random.Random
) -> tuple[dict[str, Any], list[dict[str, int | None]]]:
    """One debate of four or five turns, and its labels."""
    claim = TOPICS[topic][0]
    turns, labels = [], []
    for turn in range(4 + number % 2):
        # The user restates the claim first, then has four reasons.
        user = (
            draw.choice(OPENINGS).format(claim)
            if not turn
            else draw.choice(FOLLOWS).format(TOPICS[topic][1][turn - 1])
        )
        style = draw.choices(list(STYLES), [weight for weight, _ in STYLES.values()])[0]
        text, arguments = answer(style, topic, turn, draw)
        turns.append(
            {
                "utterance": user,
                "systemResponse": {"utterance": text, "response": {"content": text, "arguments": arguments}},
            }
        )
        labels.append(dict(zip(CRITERIA, STYLES[style][1], strict=True)))
    configuration = {"topic": {"id": f"demo-{topic + 1:02}", "description": claim}, "maxTurns": len(turns)}
    return {"simulation": {"configuration": configuration, "userTurns": turns}}, labels


def main(simulations: Path, out: Path) -> None:
    """Write ``<dataset>/inputs/debates.jsonl`` and ``<dataset>/truths/debates-labels.jsonl`` into ``out``."""
    draw = random.Random(SEED)
    made = [debate(n, n, draw) for n in range(len(TOPICS))]
    real = [
        (json.loads(line), [dict(zip(CRITERIA, labels, strict=True)) for labels in turns])
        for line, turns in zip(simulations.read_text("utf-8").splitlines(), REAL, strict=True)
    ]
    for name, rows in (("dev", real + made[:6]), ("test", made[6:])):
        for folder, file, place in (("inputs", "debates.jsonl", 0), ("truths", "debates-labels.jsonl", 1)):
            path = out / name / folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                "".join(json.dumps(row[place], ensure_ascii=False) + "\n" for row in rows), "utf-8"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
