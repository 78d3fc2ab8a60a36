"""Arguments about three questions, our own words, for debates in tests."""

from __future__ import annotations

import json
from pathlib import Path

_CARS, _BUSES, _PARKS = (
    "Should cities ban private cars?",
    "Should buses be free?",
    "Should parks close at night?",
)
ROWS: list[tuple[str, str, str]] = [  # topic, what is attacked, the argument
    (_CARS, "Many people cannot reach work without a car.", "Most commuters live within a short bus ride of their work."),
    (_CARS, "Many people cannot reach work without a car.", "People reached work before cars existed, and they still could."),
    (_CARS, "Shops in the centre need customers who drive.", "Shops in streets without cars sell more, because people stay longer."),
    (_CARS, "Shops in the centre need customers who drive.", "Most customers of central shops come on foot or by bicycle."),
    (_CARS, "Cars are a part of personal freedom.", "A freedom that fills the air with smoke takes freedom from everybody else."),
    (_CARS, "Cars are a part of personal freedom.", "Nobody is free who waits in a traffic jam every morning."),
    (_CARS, "Disabled people depend on cars.", "Streets without private cars leave room for the cars that disabled people need."),
    (_BUSES, "Free buses cost the city too much money.", "Roads for cars cost a city far more money than free buses do."),
    (_BUSES, "Free buses would be overcrowded.", "A crowded bus is a reason to buy a second bus, not to sell tickets."),
    (_BUSES, "Nobody values what is free.", "Public libraries are free, and people value them very much."),
    (_PARKS, "Parks are dangerous at night.", "Light and visitors make a park safe; locked gates do not."),
    (_PARKS, "Closing parks protects animals.", "Animals in city parks have long been used to people at night."),
]  # fmt: skip
# What a software might answer: something for every question, in the words of what is attacked above.
ANSWERS = (
    "Many people cannot reach their work without a car of their own.",
    "Shops in the centre need customers who drive there.",
    "A car is a part of the personal freedom of people.",
    "Disabled people depend on private cars every day.",
    "Free buses would cost the city too much money.",
    "Nobody values what is free for everybody.",
)
CLAIM = "Cities should ban private cars from their centres."


def write(folder: Path, *, claims: bool = False) -> Path:
    """The data folder of a simulated user; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, (topic, attacks, text) in enumerate(ROWS, 1):
        row = {"id": f"{100 + number // 4}.{number}", "topic": topic, "tags": ["City"], "attacks": attacks}
        rows.append({**row, "supports": CLAIM, "text": text, "references": [], "original": "attacks"})
        rows[-1]["text_embedding_stella"] = [0.5, 0.25]
    folder.joinpath("arguments.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if claims:
        lines = [json.dumps({"id": f"c{n}", "claim": f"Claim number {n} is right."}) for n in range(9)]
        folder.joinpath("claims.jsonl").write_text("\n".join(lines) + "\n")
    return folder
