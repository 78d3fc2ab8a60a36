"""Makes synthetic releases in the official format of Perspective Argument Retrieval 2024.

All texts and authors are made up here, from the lists below; nothing is taken from the real data, whose licence forbids
that. What is realistic is the form: fields, ids, labels, shares of property values, relevance by property, three
languages, twins (see README.md). The same call gives the same bytes everywhere.

    python tasks/perspective-2024/generate.py demo                     # the four datasets of this folder
    python tasks/perspective-2024/generate.py full --output FOLDER     # one release of the first release's size
"""

# ruff: noqa: S311

from __future__ import annotations

import argparse
import json
import random
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
LANGUAGES = ("de", "fr", "it")
LANGUAGE_SHARES = (69, 27, 4)
TWIN_SHARE = 0.08  # of arguments whose text is a stock phrase
PERSPECTIVES = (
    "gender",
    "age_bin",
    "residence",
    "civil_status",
    "denomination",
    "education",
    "political_spectrum",
)

# Shares in percent, as in the German part of test cycle 1; where only an order is known, the tail falls geometrically.
SHARES: dict[str, dict[str, float]] = {
    "gender": {"Männlich": 64, "Weiblich": 36},
    "age": {"18-34": 33, "50-64": 32, "35-49": 29, "65+": 6},
    "residence": {"Land": 91, "Stadt": 9},
    "civil_status": {
        "Verheiratet": 37, "Nicht bekannt": 34, "Ledig": 24, "Geschieden": 2.5, "Konkubinat": 1.2,
        "Verwitwet": 0.6, "Eingetragene Partnerschaft": 0.4, "Getrennt": 0.2, "Aufgelöste Partnerschaft": 0.1,
    },
    "denomination": {
        "Nicht bekannt": 40, "Evangelischreformiert/protestantisch": 25, "Römisch-katholisch": 19, "Konfessionslos": 13,
        "Andere christliche Gemeinschaften": 1.5, "Christ-katholisch": 0.7, "Christlich-orthodox": 0.4,
        "Andere Kirchen/Religionsgemeinschaften": 0.2, "Jüdische Gemeinschaften": 0.1, "Islamische Gemeinschaften": 0.1,
    },
    "education": {
        "Universität": 31, "Nicht bekannt": 28, "Fachhochschule": 13, "Berufslehre/Berufsschule": 9,
        "Gymnasium/Seminar": 6, "Höhere Berufsausbildung": 4.5, "Höhere Fachschule": 3.2, "Berufsmatura": 2.2,
        "Anderer Bildungsabschluss": 1.2, "Sekundarschule": 0.8, "Handelsschule": 0.5, "Diplommittelschule": 0.3,
        "Primarschule/Realschule": 0.2, "Anlehre": 0.1,
    },
    "political_spectrum": {
        "Links und Liberal": 30, "Mitte und Liberal": 13, "Rechts und Liberal": 4,
        "Links und Konservativ-Liberal": 6, "Mitte und Konservativ-Liberal": 17, "Rechts und Konservativ-Liberal": 13,
        "Links und Konservativ": 1, "Mitte und Konservativ": 4, "Rechts und Konservativ": 12,
    },
}  # fmt: skip

# How likely an author calls an issue important, by the first word of the political spectrum.
ISSUES: dict[str, dict[str, float]] = {
    "Offene Aussenpolitik": {"Links": 0.55, "Mitte": 0.35, "Rechts": 0.1},
    "Liberale Wirtschaftspolitik": {"Links": 0.05, "Mitte": 0.4, "Rechts": 0.6},
    "Restriktive Finanzpolitik": {"Links": 0.05, "Mitte": 0.3, "Rechts": 0.55},
    "Law & Order": {"Links": 0.05, "Mitte": 0.25, "Rechts": 0.6},
    "Restriktive Migrationspolitik": {"Links": 0.02, "Mitte": 0.2, "Rechts": 0.65},
    "Ausgebauter Umweltschutz": {"Links": 0.8, "Mitte": 0.4, "Rechts": 0.08},
    "Ausgebauter Sozialstaat": {"Links": 0.75, "Mitte": 0.25, "Rechts": 0.05},
    "Liberale Gesellschaft": {"Links": 0.75, "Mitte": 0.45, "Rechts": 0.2},
}

# (policy field, the thing in three languages). Invented: no question of the real survey is used.
THINGS: tuple[tuple[str, str, str, str], ...] = (
    ("Infrastructure & Environment", "Nachtzüge", "les trains de nuit", "i treni notturni"),
    ("Infrastructure & Environment", "Dachgärten", "les jardins sur les toits", "i giardini pensili"),
    ("Infrastructure & Environment", "Seilbahnen in Städten", "les télécabines urbaines", "le funivie urbane"),
    ("Healthcare", "Hausbesuche von Apotheken", "les visites à domicile des pharmacies", "le visite a domicilio delle farmacie"),
    ("Healthcare", "Schulzahnärzte", "les dentistes scolaires", "i dentisti scolastici"),
    ("Education", "Programmieren als Schulfach", "la programmation à l'école", "la programmazione a scuola"),
    ("Education", "altersgemischte Klassen", "les classes multiâges", "le classi miste per età"),
    ("Education", "Schulgärten", "les potagers scolaires", "gli orti scolastici"),
    ("Welfare", "Gutscheine für Kinderbetreuung", "les bons de garde d'enfants", "i buoni per la custodia dei bambini"),
    ("Welfare", "Wohnungen für mehrere Generationen", "les logements intergénérationnels", "gli alloggi intergenerazionali"),
    ("Society", "autofreie Sonntage", "les dimanches sans voiture", "le domeniche senza auto"),
    ("Society", "öffentliche Werkstätten", "les ateliers publics", "le officine pubbliche"),
    ("Society", "längere Öffnungszeiten der Bibliotheken", "les bibliothèques ouvertes plus longtemps", "gli orari prolungati delle biblioteche"),
    ("Finances", "Abgaben auf Werbeplakate", "les taxes sur les affiches publicitaires", "le tasse sui cartelloni pubblicitari"),
    ("Finances", "Gemeindeanleihen", "les emprunts communaux", "i prestiti comunali"),
    ("Economy", "Reparaturboni", "les primes à la réparation", "i bonus per le riparazioni"),
    ("Economy", "Wochenmärkte", "les marchés hebdomadaires", "i mercati settimanali"),
    ("Economy", "Vier-Tage-Wochen", "les semaines de quatre jours", "le settimane di quattro giorni"),
    ("Security", "Nachtwächter", "les veilleurs de nuit", "i guardiani notturni"),
    ("Security", "Hundestaffeln", "les brigades canines", "le unità cinofile"),
    ("Immigration", "Sprachtandems für Zugezogene", "les tandems linguistiques pour nouveaux arrivants", "i tandem linguistici per i nuovi arrivati"),
    ("Immigration", "Berufsanerkennung nach der Ankunft", "la reconnaissance des métiers à l'arrivée", "il riconoscimento delle professioni all'arrivo"),
    ("Digitisation", "elektronische Dorfplätze", "les places de village numériques", "le piazze di paese digitali"),
    ("Digitisation", "offene Wetterdaten", "les données météo ouvertes", "i dati meteo aperti"),
    ("Foreign Policy", "Städtepartnerschaften", "les jumelages de villes", "i gemellaggi fra città"),
    ("Political System", "ausgeloste Bürgerräte", "les assemblées citoyennes tirées au sort", "le assemblee civiche estratte a sorte"),
)  # fmt: skip
QUESTIONS: tuple[tuple[str, str, str], ...] = (
    ("Soll der Bund {} finanziell fördern?", "La Confédération doit-elle financer {} ?", "La Confederazione deve finanziare {}?"),
    ("Sollen {} in jeder Gemeinde Pflicht werden?", "Faut-il rendre {} obligatoires dans chaque commune ?", "Bisogna rendere obbligatori {} in ogni comune?"),
    ("Soll das Volk über {} abstimmen?", "Le peuple doit-il voter sur {} ?", "Il popolo deve votare su {}?"),
)  # fmt: skip

_OPENINGS: dict[tuple[str, str], tuple[str, ...]] = {
    ("de", "FAVOR"): ("Ja, {} sind sinnvoll", "Ich bin für {}", "{} bringen allen etwas", "Gerade {} fehlen uns", "Der Ausbau lohnt sich: {} haben Zukunft"),
    ("de", "AGAINST"): ("Nein, {} braucht es nicht", "Ich lehne {} ab", "{} kosten zu viel", "Mit {} ist niemandem geholfen", "{} sind keine Aufgabe des Bundes"),
    ("fr", "FAVOR"): ("Oui, {} sont utiles", "Je soutiens {}", "{} profitent à tout le monde", "Il nous manque {}"),
    ("fr", "AGAINST"): ("Non, {} sont inutiles", "Je refuse {}", "{} coûtent trop cher", "{} ne relèvent pas de l'État"),
    ("it", "FAVOR"): ("Sì, {} sono utili", "Sostengo {}", "Ci mancano {}"),
    ("it", "AGAINST"): ("No, {} sono inutili", "Rifiuto {}", "{} costano troppo"),
}  # fmt: skip
# What people argue with. Spectrum and age colour the choice: that is the trace that implicit perspectivism looks for.
_REASONS: dict[str, dict[str, tuple[str, ...]]] = {
    "de": {
        "Links": ("weil alle davon etwas haben sollen, nicht nur wer Geld hat", "denn Klima und Natur warten nicht", "der Service public gehört gestärkt", "Solidarität ist kein Luxus"),
        "Mitte": ("wenn die Kosten im Rahmen bleiben", "es braucht einen Kompromiss zwischen Stadt und Land", "die Kantone sollen mitreden", "ein Versuch zeigt, was es bringt"),
        "Rechts": ("Eigenverantwortung geht vor", "der Staat mischt sich schon genug ein", "am Ende zahlt der Mittelstand mit seinen Steuern", "Sicherheit und Ordnung sind wichtiger"),
    },
    "fr": {
        "Links": ("car tout le monde doit en profiter, pas seulement les riches", "le climat n'attend pas", "il faut renforcer le service public"),
        "Mitte": ("si les coûts restent raisonnables", "un compromis entre ville et campagne est possible", "les cantons ont leur mot à dire"),
        "Rechts": ("la responsabilité individuelle d'abord", "l'État se mêle déjà de tout", "les impôts sont assez élevés"),
    },
    "it": {
        "Links": ("perché tutti devono averne un vantaggio", "il clima non aspetta"),
        "Mitte": ("se i costi restano ragionevoli", "serve un compromesso"),
        "Rechts": ("prima viene la responsabilità individuale", "le tasse sono già alte"),
    },
}  # fmt: skip
_ASIDES: dict[str, dict[str, tuple[str, ...]]] = {
    "de": {
        "18-34": ("Meine Generation erwartet das.", "An der Hochschule sehe ich das jeden Tag."),
        "35-49": ("Als Familie merken wir das im Alltag.", "Beruf und Kinder lassen sich sonst kaum verbinden."),
        "50-64": ("Nach dreissig Jahren im Beruf weiss ich das.", "In der Gemeinde haben wir damit Erfahrung."),
        "65+": ("Wir Älteren haben das anders gelernt.", "Im Ruhestand denkt man darüber nach."),
    },
    "fr": {
        "18-34": ("Ma génération l'attend.",), "35-49": ("En famille, on le voit chaque jour.",),
        "50-64": ("Trente ans de métier me l'ont appris.",), "65+": ("Nous, les aînés, l'avons vécu.",),
    },
    "it": {
        "18-34": ("La mia generazione lo aspetta.",), "35-49": ("In famiglia lo vediamo ogni giorno.",),
        "50-64": ("Lo insegnano trent'anni di lavoro.",), "65+": ("Noi anziani lo abbiamo vissuto.",),
    },
}  # fmt: skip
_STOCK: dict[tuple[str, str], tuple[str, ...]] = {
    ("de", "FAVOR"): ("Ja, unbedingt.", "Das ist überfällig.", "Nur wenn es bezahlbar bleibt."),
    ("de", "AGAINST"): ("Nein danke.", "Eigenverantwortung!", "Das regelt der Markt."),
    ("fr", "FAVOR"): ("Oui, absolument.", "C'est urgent."),
    ("fr", "AGAINST"): ("Non merci.", "Responsabilité individuelle !"),
    ("it", "FAVOR"): ("Sì, certo.",),
    ("it", "AGAINST"): ("No, grazie.",),
}


class Issue(NamedTuple):
    """One question: its policy field, and its thing and its wording in the three languages."""

    topic: str
    things: tuple[str, ...]
    questions: tuple[str, ...]


class Argument(NamedTuple):
    """An argument of the corpus and the number of its issue."""

    id: int
    issue: int
    data: dict[str, Any]


def issues() -> list[Issue]:
    """All 78 issues, in the order in which splits take them."""
    made = []
    for q, question in enumerate(QUESTIONS):
        for n in range(len(THINGS)):
            topic, *things = THINGS[(n * 7 + q * 3) % len(THINGS)]
            made.append(Issue(topic, tuple(things), tuple(question[i].format(things[i]) for i in range(3))))
    return made


def _draw(rng: random.Random, shares: dict[str, float]) -> str:
    return rng.choices(list(shares), list(shares.values()))[0]


def _profile(rng: random.Random) -> dict[str, Any]:
    profile: dict[str, Any] = {key: _draw(rng, shares) for key, shares in SHARES.items()}
    wing = profile["political_spectrum"].split()[0]
    profile["important_political_issues"] = [i for i, by in ISSUES.items() if rng.random() < by[wing]]
    return profile


def _text(rng: random.Random, issue: Issue, language: str, stance: str, profile: dict[str, Any]) -> str:
    if rng.random() < TWIN_SHARE:
        return rng.choice(_STOCK[language, stance])
    thing = issue.things[LANGUAGES.index(language)]
    if language == "de" and rng.random() < 0.3:
        thing = "diese Massnahmen"  # not everybody names the thing
    opening = rng.choice(_OPENINGS[language, stance]).format(thing)
    wing = profile["political_spectrum"].split()[0]
    text = opening[0].upper() + opening[1:]
    if rng.random() < 0.8:
        text += ", " + rng.choice(_REASONS[language][wing])
    text += "."
    if rng.random() < 0.5:
        text += " " + rng.choice(_ASIDES[language][profile["age"]])
    if rng.random() < 0.25:
        other = rng.choice(_REASONS[language][rng.choice(("Links", "Mitte", "Rechts"))])
        text += " " + other[0].upper() + other[1:] + "."
    return text


def arguments(
    rng: random.Random, year: int, first: int, total: int, numbers: Sequence[int]
) -> list[Argument]:
    """``total`` arguments of one election on the issues ``numbers``; their ids run on from ``first``.

    Issues differ in size (the largest is about six times the smallest), and authors answer several issues.
    """
    weights = [rng.uniform(0.35, 2.1) for _ in numbers]
    authors = [_profile(rng) for _ in range(max(60, total // 12))]
    catalogue = issues()
    made = []
    for n, issue in enumerate(sorted(rng.choices(numbers, weights, k=total))):
        profile = rng.choice(authors)
        wing = profile["political_spectrum"].split()[0]
        language = rng.choices(LANGUAGES, LANGUAGE_SHARES)[0]
        stance = "FAVOR" if rng.random() < {"Links": 0.75, "Mitte": 0.5, "Rechts": 0.3}[wing] else "AGAINST"
        number = int(f"{year}0{first + n}")
        made.append(
            Argument(
                number,
                issue,
                {
                    "argument_id": number,
                    "argument": _text(rng, catalogue[issue], language, stance, profile),
                    "topic": catalogue[issue].topic,
                    "stance": stance,
                    "demographic_profile": profile,
                },
            )
        )
    return made


def queries(
    corpus: Sequence[Argument], numbers: Sequence[int], year: int, readers: random.Random | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The baseline and the perspective queries on the issues ``numbers``.

    With ``readers`` (third test set) relevance is what made-up readers with the property chose, not who wrote.
    """
    baseline: list[dict[str, Any]] = []
    perspective: list[dict[str, Any]] = []
    catalogue = issues()
    by_issue: dict[int, list[Argument]] = {n: [] for n in numbers}
    for argument in corpus:
        if argument.issue in by_issue:
            by_issue[argument.issue].append(argument)
    for number in numbers:
        own = by_issue[number]
        lists = _lists(own) if readers is None else _chosen(own, readers)
        for question in catalogue[number].questions:
            relevant = [a.id for a in own]
            baseline.append({"query_id": len(baseline), "text": question, "relevant_candidates": relevant})
            for (key, value), relevant in lists.items():
                perspective.append(
                    {
                        "query_id": int(f"{year}1{len(perspective)}"),
                        "text": question,
                        "demographic_property": {key: value},
                        "relevant_candidates": relevant,
                    }
                )
    return baseline, perspective


def _lists(own: Sequence[Argument]) -> dict[tuple[str, str], list[int]]:
    """The arguments on an issue by property and value of their authors, those that occur."""
    lists: dict[tuple[str, str], list[int]] = {}
    for key in PERSPECTIVES:
        field = "age" if key == "age_bin" else key
        for value in SHARES[field]:
            lists[key, value] = [a.id for a in own if a.data["demographic_profile"][field] == value]
    for value in ISSUES:
        lists["important_political_issue", value] = [
            a.id for a in own if value in a.data["demographic_profile"]["important_political_issues"]
        ]
    return {key: found for key, found in lists.items() if found}


def _chosen(own: Sequence[Argument], rng: random.Random) -> dict[tuple[str, str], list[int]]:
    """What readers with each of 27 values of four properties chose: a third of the issue's arguments."""
    values = [("gender", v) for v in SHARES["gender"]] + [("age_bin", v) for v in SHARES["age"]]
    values += [("political_spectrum", v) for v in SHARES["political_spectrum"]]
    values += [("important_political_issue", v) for v in ISSUES]
    values += [("residence", v) for v in SHARES["residence"]] + [
        ("education", v) for v in list(SHARES["education"])[:2]
    ]
    return {pair: [a.id for a in own if rng.random() < 1 / 3] or [own[0].id] for pair in values}


def write_release(
    folder: Path,
    corpus: Sequence[Argument],
    splits: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]],
    hidden: str | None = None,
) -> None:
    """Write corpus and queries; those of the split ``hidden`` without relevance."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "corpus.jsonl", (a.data for a in corpus))
    for split, (baseline, perspective) in splits.items():
        for word, rows in (("baseline", baseline), ("perspective", perspective)):
            if split == hidden:
                rows = [{k: v for k, v in row.items() if k != "relevant_candidates"} for row in rows]
            (folder / f"{word}-queries").mkdir(exist_ok=True)
            _write(folder / f"{word}-queries" / f"queries_{split}.jsonl", rows)


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)


def release(size: int, train: int, dev: int, seed: int) -> tuple[list[Argument], dict[str, Any]]:
    """A corpus of ``size`` arguments of 2019 and the queries of the splits train and dev on so many issues."""
    corpus = arguments(random.Random(seed), 2019, 0, size, range(train + dev))
    return corpus, {
        "train": queries(corpus, range(train), 2019),
        "dev": queries(corpus, range(train, train + dev), 2019),
    }


def demo(target: Path) -> None:
    """The four small datasets of this task: 2019 (dev), new issues of 2019, 2023, and readers' choices of 2023."""
    base, known = release(150, 3, 2, seed=1)
    first = [*base, *arguments(random.Random(2), 2019, len(base), 50, (5, 6))]
    second = [*base, *arguments(random.Random(3), 2023, 0, 60, (7, 8))]
    sample = random.Random(4).sample([a for a in second if a.issue == 7], 24)
    kept = {a.id for a in sample}
    third = [a for a in second if a.issue < 5 or a.id in kept]
    tests = {
        "test-1": (first, queries(first, (5, 6), 2019)),
        "test-2": (second, queries(second, (7, 8), 2023)),
        "test-3": (third, queries(third, (7,), 2023, random.Random(5))),
    }
    for dataset in ("dev", *tests):
        shutil.rmtree(target / dataset, ignore_errors=True)
    write_release(target / "dev" / "inputs", base, known, hidden="dev")
    write_release(target / "dev" / "truths", base, {"dev": known["dev"]})
    for dataset, (corpus, test) in tests.items():
        write_release(target / dataset / "inputs", corpus, {**known, "test": test}, hidden="test")
        write_release(target / dataset / "truths", corpus, {"test": test})


def main() -> None:
    """Write a profile's files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("profile", choices=("demo", "full"), nargs="?", default="demo")
    parser.add_argument("--output", type=Path, default=HERE / "datasets", metavar="FOLDER")
    parser.add_argument("--arguments", type=int, default=26_335, metavar="N", help="full: size of the corpus")
    parser.add_argument("--train", type=int, default=35, metavar="N", help="full: issues of the train split")
    parser.add_argument("--dev", type=int, default=10, metavar="N", help="full: issues of the dev split")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="full: seed of the random numbers")
    args = parser.parse_args()
    if args.profile == "demo":
        demo(args.output)
    elif args.train + args.dev > len(issues()):
        parser.error(f"there are {len(issues())} issues")
    else:
        write_release(args.output, *release(args.arguments, args.train, args.dev, args.seed))


if __name__ == "__main__":
    main()
