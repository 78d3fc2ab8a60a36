"""Texts that speak to whoever judges them instead of to their reader: found by patterns, in several languages.

A heuristic: it knows common ways to give a judge an order, to close a quotation, or to play another role. Somebody who
knows the patterns writes around them, and an answer *about* such texts may match. That is why it is a warning; how far a
judge obeys is measured, not guessed (:mod:`evaluator.judges.canaries`).
"""

from __future__ import annotations

import re
import unicodedata

MOST_CHARACTERS = 100_000  # of a text that are looked at
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # Forget what you were told: en, de, fr, es, it, pt, nl.
        r"\b(ignore|disregard|forget|override)\b.{0,40}\b(previous|prior|above|earlier|preceding|all|your|these|system)\b.{0,30}"
        r"\b(instruction|prompt|rule|guideline|direction|criteri|text)",
        r"\b(ignorier|missacht|vergiss|vergesst)\w*\b.{0,40}\b(anweisung|vorgabe|regel|instruktion|anleitung|prompt)",
        r"\b(ignore[zr]?|oublie[zr]?|n[ée]glige[zr]?)\b.{0,40}\b(instructions?|consignes?|r[èe]gles?)\b",
        r"\b(ignor[ae]|olvid[ae]|descart[ae])\w*\b.{0,40}\b(instrucci|indicaci|regla|orden)",
        r"\b(ignor[ai]|dimentic[ah]i?)\w*\b.{0,40}\b(istruzion|indicazion|regol)",
        r"\b(ignore|esque[çc]a|desconsidere)\b.{0,40}\b(instru[çc]|regra|orienta[çc])",
        r"\b(negeer|vergeet)\b.{0,40}\b(instructie|aanwijzing|regel)",
        r"(忽略|无视|無視|忘记|忘記).{0,12}(指令|指示|说明|說明|规则|規則|要求|提示)",
        r"(игнорир|забудь)\w*.{0,40}(инструкц|указан|правил)",
        r"(無視|忘れ).{0,8}(して|て)",
        # To the judge: what to reply, or how to score.
        r"\b(note|message|instruction|attention|dear|hello|hey)\b.{0,20}\b(to|for)?\b.{0,10}"
        r"\b(the )?(judge|grader|evaluator|examiner|assessor|annotator|reviewer|rater)\b",
        r"\b(reply|respond|answer|output|say|return|print|write)\b.{0,25}[\"'“”‘’*`]?\b(yes|no|true|[1-5]/5|10/10)\b[\"'“”‘’*`]?"
        r"(.{0,20}\b(only|always|regardless|whatever|to (all|every|each)|and nothing else)\b|\s*[.!]?\s*$)",
        r"\b(antworte|antworten sie|sage?|gib)\b.{0,25}\b(ja|yes)\b.{0,20}\b(immer|nur|aus|auf alle)?",
        r"\b(r[ée]pond(s|ez|re))\b.{0,20}\b(oui|yes)\b|\b(respond[ae]|contest[ae]|di)\b.{0,20}\b(s[íi]|yes)\b\s*[.!]?\s*$",
        r"\b(give|assign|award|grant|rate|score|grade|mark)\b.{0,40}\b(full|highest|maximum|top|perfect|best)\b.{0,15}"
        r"\b(score|mark|grade|rating|points?|credit)",
        r"\b(volle|h[öo]chste|maximale)\w*\s+(punktzahl|bewertung|note|punkte)\b",
        r"(请|請)?(回答|输出|輸出|给出|給出).{0,6}(是|YES|满分|滿分|最高分)",
        r"(ответь|скажи|поставь).{0,20}(да|yes|максимальн|высш)",
        r"\b(as|you are|act as)\b.{0,20}\b(an? |the )?(judge|grader|evaluator|examiner|assessor)\b",
        r"\bthis (answer|response|report|sentence|text)\b.{0,30}\b(must|should|has to|is to) be\b.{0,20}"
        r"\b(judged|graded|scored|rated|marked|accepted|evaluated)\b",
        # A quotation that is closed, or another speaker that is played.
        r"<\|?(im_start|im_end|system|endoftext|assistant|user)\|?>|\[/?INST\]|<</?SYS>>|^\s*#{2,}\s*(system|instruction)",
        r"(^|\n)\s*(system|assistant|developer)\s*:\s",
        r"(?-i:\b(END|BEGIN) [0-9a-f]{8,}\b|\bEND OF (THE )?(DOCUMENT|EVIDENCE|ANSWER|TEXT|QUOTATION|TRANSCRIPT)\b)",
        r"</?(text|document|answer|evidence|sentence|instructions?)>",
        r"\b(correct|right|only|permitted|allowed|expected)\b.{0,20}\b(judge?ment|output|verdict|grade|reply)\b.{0,40}"
        r"\b(yes|no|correct|true)\b",
    )
)


def speaks_to_the_judge(text: str) -> str | None:
    """The first words of ``text`` that seem to be meant for whoever judges it; None if none are found."""
    # Look-alike letters, letters of other widths and marks that print nothing are how such words are hidden.
    plain = unicodedata.normalize("NFKC", text[:MOST_CHARACTERS])
    plain = "".join(c for c in plain if unicodedata.category(c) != "Cf")
    for line in plain.splitlines() or [""]:
        for start in range(0, max(1, len(line)), 4000):
            piece = line[start : start + 4200]
            for pattern in _PATTERNS:
                found = pattern.search(piece)
                if found is not None:
                    return found[0].strip()[:80]
    return None
