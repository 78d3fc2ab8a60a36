"""Make the demonstration's arguments and claims: real sentences where there are any, templates for the rest.

    python generate.py ARGSME GENIRSIM

``ARGSME`` is ``sample-with-title-for-lnc2.jsonl`` and ``GENIRSIM`` a ``simulations.jsonl`` (README.md says which, by
SHA-256). Writes ``services/arguments/arguments.jsonl.gz``, ``provenance.json`` and both datasets' ``claims.jsonl``
beside this file; the same input gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Row = dict[str, Any]

# The questions of Touché 2020 that the sample of args.me has arguments for: both answers as claims, and tags.
QUESTIONS: dict[str, tuple[str, str, list[str]]] = {
    "Should teachers get tenure?": ("Teachers should get tenure.", "Teachers should not get tenure.", ["Education", "Work"]),
    "Is vaping with e-cigarettes safe?": ("Vaping with e-cigarettes is safe.", "Vaping with e-cigarettes is not safe.", ["Health"]),
    "Should insider trading be allowed?": ("Insider trading should be allowed.", "Insider trading should not be allowed.", ["Economy", "Law"]),
    "Should corporal punishment be used in schools?": ("Corporal punishment should be used in schools.", "Corporal punishment should not be used in schools.", ["Education", "Children"]),
    "Should social security be privatized?": ("Social security should be privatized.", "Social security should not be privatized.", ["Economy", "Politics"]),
    "Is a college education worth it?": ("A college education is worth it.", "A college education is not worth it.", ["Education"]),
    "Should felons who have completed their sentence be allowed to vote?": ("Felons who have completed their sentence should be allowed to vote.", "Felons who have completed their sentence should not be allowed to vote.", ["Law", "Politics"]),
    "Should any vaccines be required for children?": ("Some vaccines should be required for children.", "No vaccines should be required for children.", ["Health", "Children"]),
    "Should performance-enhancing drugs be accepted in sports?": ("Performance-enhancing drugs should be accepted in sports.", "Performance-enhancing drugs should not be accepted in sports.", ["Sports"]),
    "Should birth control pills be available over the counter?": ("Birth control pills should be available over the counter.", "Birth control pills should not be available over the counter.", ["Health"]),
    "Can alternative energy effectively replace fossil fuels?": ("Alternative energy can effectively replace fossil fuels.", "Alternative energy cannot effectively replace fossil fuels.", ["Environment", "Technology"]),
    "Should recreational marijuana be legal?": ("Recreational marijuana should be legal.", "Recreational marijuana should not be legal.", ["Law", "Health"]),
    "Is homework beneficial?": ("Homework is beneficial.", "Homework is not beneficial.", ["Education", "Children"]),
    "Should students have to wear school uniforms?": ("Students should have to wear school uniforms.", "Students should not have to wear school uniforms.", ["Education"]),
    "Should the federal minimum wage be increased?": ("The federal minimum wage should be increased.", "The federal minimum wage should not be increased.", ["Economy", "Work"]),
    "Do standardized tests improve education?": ("Standardized tests improve education.", "Standardized tests do not improve education.", ["Education"]),
    "Is golf a sport?": ("Golf is a sport.", "Golf is not a sport.", ["Sports"]),
    "Should the voting age be lowered?": ("The voting age should be lowered.", "The voting age should not be lowered.", ["Politics"]),
    "Are social networking sites good for our society?": ("Social networking sites are good for our society.", "Social networking sites are not good for our society.", ["Technology", "Society"]),
    "Do violent video games contribute to youth violence?": ("Violent video games contribute to youth violence.", "Violent video games do not contribute to youth violence.", ["Society", "Children"]),
    "Should bottled water be banned?": ("Bottled water should be banned.", "Bottled water should not be banned.", ["Environment"]),
    "Should fighting be allowed in hockey?": ("Fighting should be allowed in hockey.", "Fighting should not be allowed in hockey.", ["Sports"]),
    "Is human activity primarily responsible for global climate change?": ("Human activity is primarily responsible for global climate change.", "Human activity is not primarily responsible for global climate change.", ["Environment", "Science"]),
    "Should everyone get a universal basic income?": ("Everyone should get a universal basic income.", "Not everyone should get a universal basic income.", ["Economy", "Society"]),
    "Should churches remain tax-exempt?": ("Churches should remain tax-exempt.", "Churches should not remain tax-exempt.", ["Religion", "Law"]),
    "Should body cameras be mandatory for police?": ("Body cameras should be mandatory for police.", "Body cameras should not be mandatory for police.", ["Law", "Technology"]),
    "Is drinking milk healthy for humans?": ("Drinking milk is healthy for humans.", "Drinking milk is not healthy for humans.", ["Health", "Food"]),
    "Should prescription drugs be advertised directly to consumers?": ("Prescription drugs should be advertised directly to consumers.", "Prescription drugs should not be advertised directly to consumers.", ["Health", "Economy"]),
    "Is cell phone radiation safe?": ("Cell phone radiation is safe.", "Cell phone radiation is not safe.", ["Health", "Technology"]),
    "Should student loan debt be easier to discharge in bankruptcy?": ("Student loan debt should be easier to discharge in bankruptcy.", "Student loan debt should not be easier to discharge in bankruptcy.", ["Economy", "Education"]),
    "Does lowering the federal corporate income tax rate create jobs?": ("Lowering the federal corporate income tax rate creates jobs.", "Lowering the federal corporate income tax rate does not create jobs.", ["Economy"]),
    "Do electronic voting machines improve the voting process?": ("Electronic voting machines improve the voting process.", "Electronic voting machines do not improve the voting process.", ["Technology", "Politics"]),
    "Should net neutrality be restored?": ("Net neutrality should be restored.", "Net neutrality should not be restored.", ["Technology", "Law"]),
    "Should people become vegetarian?": ("People should become vegetarian.", "People should not become vegetarian.", ["Food", "Health"]),
    "Should election day be a national holiday?": ("Election day should be a national holiday.", "Election day should not be a national holiday.", ["Politics"]),
    "Should the penny stay in circulation?": ("The penny should stay in circulation.", "The penny should not stay in circulation.", ["Economy"]),
    "Is obesity a disease?": ("Obesity is a disease.", "Obesity is not a disease.", ["Health"]),
    "Should marijuana be a medical option?": ("Marijuana should be a medical option.", "Marijuana should not be a medical option.", ["Health"]),
    "Should animals be used for scientific or commercial testing?": ("Animals should be used for scientific or commercial testing.", "Animals should not be used for scientific or commercial testing.", ["Science", "Ethics"]),
}  # fmt: skip

# Claims of the debates: (id, question, whether the user stands for it, what moves the user).
TRAIN = [
    (
        "Is homework beneficial?",
        True,
        "My children learned to organise themselves by it, and their marks went up.",
    ),
    (
        "Should students have to wear school uniforms?",
        True,
        "Uniforms spare families a contest over clothes.",
    ),
    ("Should the voting age be lowered?", False, "At sixteen I copied whatever my parents thought."),
    (
        "Are social networking sites good for our society?",
        True,
        "I found old friends and a job through them.",
    ),
    ("Should bottled water be banned?", True, "The river behind our house is full of plastic bottles."),
    ("Is a college education worth it?", False, "My cousin learned a trade and owes nobody anything."),
]
TEST = [
    ("Should teachers get tenure?", True, "Without it a teacher is at the mercy of every angry parent."),
    ("Should insider trading be allowed?", True, "Prices would show sooner what a company is worth."),
    ("Should corporal punishment be used in schools?", False, "Fear teaches children nothing but fear."),
    ("Should social security be privatized?", True, "I would rather invest my contributions myself."),
    (
        "Should felons who have completed their sentence be allowed to vote?",
        True,
        "They have paid their debt.",
    ),
    ("Should any vaccines be required for children?", True, "Measles came back to our school last year."),
    ("Should performance-enhancing drugs be accepted in sports?", True, "Everybody takes them anyway."),
    ("Can alternative energy effectively replace fossil fuels?", True, "Our village already runs on wind."),
    ("Should the federal minimum wage be increased?", False, "Small shops like mine would have to close."),
    ("Do standardized tests improve education?", True, "Before them nobody knew which schools failed."),
    ("Do violent video games contribute to youth violence?", True, "My nephew copies what he plays."),
    (
        "Is human activity primarily responsible for global climate change?",
        True,
        "The measurements leave no doubt.",
    ),
    ("Should everyone get a universal basic income?", True, "Nobody should have to beg at an office."),
    ("Should body cameras be mandatory for police?", True, "What is filmed cannot be denied."),
    ("Should fighting be allowed in hockey?", False, "I want to see goals, not blood."),
    ("Is golf a sport?", False, "A pastime that one can do with a cigar is no sport."),
]

# Subjects of the generated debates: what is to be done, as a gerund and as an infinitive, and tags.
SUBJECTS: list[tuple[str, str, list[str]]] = [
    ("planting trees along every street", "plant trees along every street", ["Environment", "Cities"]),
    ("making public transport free", "make public transport free", ["Cities", "Economy"]),
    ("banning private cars from city centres", "ban private cars from city centres", ["Cities", "Environment"]),
    ("opening libraries on Sundays", "open libraries on Sundays", ["Culture", "Education"]),
    ("teaching programming in primary schools", "teach programming in primary schools", ["Education", "Technology"]),
    ("starting school an hour later", "start school an hour later", ["Education", "Health"]),
    ("abolishing school grades", "abolish school grades", ["Education"]),
    ("introducing a four-day working week", "introduce a four-day working week", ["Work", "Economy"]),
    ("allowing work from home for everybody", "allow work from home for everybody", ["Work", "Technology"]),
    ("ending the change between summer and winter time", "end the change between summer and winter time", ["Society"]),
    ("taxing sugary drinks", "tax sugary drinks", ["Health", "Food"]),
    ("serving only vegetarian meals in canteens", "serve only vegetarian meals in canteens", ["Food", "Environment"]),
    ("forbidding phones in classrooms", "forbid phones in classrooms", ["Education", "Technology"]),
    ("paying for museums from taxes", "pay for museums from taxes", ["Culture", "Economy"]),
    ("building more nuclear power stations", "build more nuclear power stations", ["Environment", "Technology"]),
    ("putting solar panels on every public roof", "put solar panels on every public roof", ["Environment"]),
    ("limiting speed on motorways", "limit speed on motorways", ["Traffic", "Environment"]),
    ("making bicycle helmets compulsory", "make bicycle helmets compulsory", ["Traffic", "Health"]),
    ("replacing cash by cards", "replace cash by cards", ["Economy", "Technology"]),
    ("closing zoos", "close zoos", ["Animals", "Ethics"]),
    ("forbidding advertising to children", "forbid advertising to children", ["Children", "Economy"]),
    ("making voting compulsory", "make voting compulsory", ["Politics"]),
    ("choosing some councillors by lot", "choose some councillors by lot", ["Politics"]),
    ("publishing everybody's tax returns", "publish everybody's tax returns", ["Politics", "Economy"]),
    ("giving every newborn a savings account", "give every newborn a savings account", ["Economy", "Children"]),
    ("raising the retirement age", "raise the retirement age", ["Work", "Politics"]),
    ("capping rents in large cities", "cap rents in large cities", ["Cities", "Economy"]),
    ("letting robots care for the old", "let robots care for the old", ["Technology", "Health"]),
    ("using face recognition in stations", "use face recognition in stations", ["Technology", "Law"]),
    ("sending people to Mars", "send people to Mars", ["Science", "Technology"]),
    ("forbidding fireworks for private use", "forbid fireworks for private use", ["Society", "Animals"]),
    ("teaching philosophy instead of religion", "teach philosophy instead of religion", ["Education", "Religion"]),
    ("reading novels aloud in offices", "read novels aloud in offices", ["Culture", "Work"]),
    ("banning plastic packaging", "ban plastic packaging", ["Environment", "Economy"]),
    ("making a year of civil service compulsory", "make a year of civil service compulsory", ["Society", "Politics"]),
    ("allowing dogs in restaurants", "allow dogs in restaurants", ["Animals", "Food"]),
    ("forbidding short flights", "forbid short flights", ["Traffic", "Environment"]),
    ("subsidising night trains", "subsidise night trains", ["Traffic", "Economy"]),
    ("growing genetically modified crops", "grow genetically modified crops", ["Food", "Science"]),
    ("requiring labels on texts written by machines", "require labels on texts written by machines", ["Technology", "Law"]),
    ("storing drinking water in every cellar", "store drinking water in every cellar", ["Society"]),
    ("paying blood donors", "pay blood donors", ["Health", "Ethics"]),
    ("turning golf courses into parks", "turn golf courses into parks", ["Cities", "Sports"]),
    ("abolishing homework on weekends", "abolish homework on weekends", ["Education", "Children"]),
    ("lighting streets only when somebody walks there", "light streets only when somebody walks there", ["Cities", "Environment"]),
    ("opening universities to everybody without tests", "open universities to everybody without tests", ["Education"]),
    ("publishing research only in open journals", "publish research only in open journals", ["Science", "Culture"]),
    ("replacing examinations by projects", "replace examinations by projects", ["Education"]),
    ("insuring every cyclist by law", "insure every cyclist by law", ["Traffic", "Law"]),
    ("painting roofs white", "paint roofs white", ["Cities", "Environment"]),
    ("counting commuting as working time", "count commuting as working time", ["Work", "Traffic"]),
    ("forbidding leaf blowers", "forbid leaf blowers", ["Cities", "Environment"]),
    ("giving every school a garden", "give every school a garden", ["Education", "Food"]),
    ("keeping shops closed on Sundays", "keep shops closed on Sundays", ["Society", "Economy"]),
    ("letting pupils choose their teachers", "let pupils choose their teachers", ["Education"]),
    ("teaching first aid in every class", "teach first aid in every class", ["Education", "Health"]),
    ("selling fruit without wrapping", "sell fruit without wrapping", ["Food", "Environment"]),
    ("testing drivers again at seventy", "test drivers again at seventy", ["Traffic", "Law"]),
    ("broadcasting court hearings", "broadcast court hearings", ["Law", "Culture"]),
    ("electing judges", "elect judges", ["Law", "Politics"]),
    ("paying parents for raising children", "pay parents for raising children", ["Children", "Economy"]),
    ("lending tools in public libraries", "lend tools in public libraries", ["Cities", "Culture"]),
    ("moving ministries to the countryside", "move ministries to the countryside", ["Politics"]),
    ("forbidding private schools", "forbid private schools", ["Education", "Politics"]),
    ("taxing inheritances at one half", "tax inheritances at one half", ["Economy", "Politics"]),
    ("making weather data public", "make weather data public", ["Science", "Technology"]),
    ("reintroducing wolves", "reintroduce wolves", ["Animals", "Environment"]),
    ("keeping cats indoors", "keep cats indoors", ["Animals"]),
    ("building wooden high-rises", "build wooden high-rises", ["Cities", "Technology"]),
    ("repairing devices for free", "repair devices for free", ["Technology", "Economy"]),
    ("learning poems by heart at school", "learn poems by heart at school", ["Education", "Culture"]),
    ("teaching chess in primary schools", "teach chess in primary schools", ["Education"]),
    ("planting meadows beside motorways", "plant meadows beside motorways", ["Environment", "Traffic"]),
    ("lending books without a return date", "lend books without a return date", ["Culture"]),
    ("closing airports at night", "close airports at night", ["Traffic", "Health"]),
    ("paying apprentices a full wage", "pay apprentices a full wage", ["Work", "Economy"]),
    ("heating homes with waste heat", "heat homes with waste heat", ["Cities", "Environment"]),
    ("swimming lessons for every child", "give every child swimming lessons", ["Children", "Sports"]),
    ("counting votes in public", "count votes in public", ["Politics"]),
    ("renting out empty flats by law", "rent out empty flats by law", ["Cities", "Law"]),
    ("opening school kitchens to neighbours", "open school kitchens to neighbours", ["Food", "Education"]),
    ("building cycle paths beside every road", "build cycle paths beside every road", ["Traffic", "Cities"]),
    ("ending advertising by post", "end advertising by post", ["Economy", "Environment"]),
    ("holding parliament sessions at weekends", "hold parliament sessions at weekends", ["Politics", "Work"]),
    ("funding local newspapers from taxes", "fund local newspapers from taxes", ["Culture", "Economy"]),
    ("keeping old varieties of apples", "keep old varieties of apples", ["Food", "Environment"]),
    ("measuring noise in every street", "measure noise in every street", ["Cities", "Health"]),
    ("sharing patents on medicines", "share patents on medicines", ["Health", "Law"]),
    ("storing wind power in old mines", "store wind power in old mines", ["Environment", "Technology"]),
    ("letting towns choose their own taxes", "let towns choose their own taxes", ["Politics", "Economy"]),
    ("teaching two foreign languages to everybody", "teach two foreign languages to everybody", ["Education"]),
]  # fmt: skip

# What the questions of args.me ask for, in the same words, so that the debates' claims have many arguments.
ASKED: dict[str, tuple[str, str]] = {
    "Should teachers get tenure?": ("giving teachers tenure", "give teachers tenure"),
    "Should insider trading be allowed?": ("allowing insider trading", "allow insider trading"),
    "Should corporal punishment be used in schools?": ("using corporal punishment in schools", "use corporal punishment in schools"),
    "Should social security be privatized?": ("privatizing social security", "privatize social security"),
    "Should felons who have completed their sentence be allowed to vote?": ("letting felons vote after their sentence", "let felons vote after their sentence"),
    "Should any vaccines be required for children?": ("requiring vaccines for children", "require vaccines for children"),
    "Should performance-enhancing drugs be accepted in sports?": ("accepting performance-enhancing drugs in sports", "accept performance-enhancing drugs in sports"),
    "Can alternative energy effectively replace fossil fuels?": ("replacing fossil fuels by alternative energy", "replace fossil fuels by alternative energy"),
    "Is homework beneficial?": ("giving homework", "give homework"),
    "Should students have to wear school uniforms?": ("requiring school uniforms", "require school uniforms"),
    "Should the federal minimum wage be increased?": ("increasing the federal minimum wage", "increase the federal minimum wage"),
    "Do standardized tests improve education?": ("giving standardized tests", "give standardized tests"),
    "Should the voting age be lowered?": ("lowering the voting age", "lower the voting age"),
    "Are social networking sites good for our society?": ("meeting on social networking sites", "meet on social networking sites"),
    "Should bottled water be banned?": ("banning bottled water", "ban bottled water"),
    "Should fighting be allowed in hockey?": ("allowing fighting in hockey", "allow fighting in hockey"),
    "Should everyone get a universal basic income?": ("paying everyone a universal basic income", "pay everyone a universal basic income"),
    "Should body cameras be mandatory for police?": ("making body cameras mandatory for police", "make body cameras mandatory for police"),
    "Is a college education worth it?": ("going to college", "go to college"),
}  # fmt: skip

# Points of view: a name, a reason for it, a reason against it. {g} is the gerund, {i} the infinitive.
ASPECTS: list[tuple[str, str, str]] = [
    ("cost", "In the long run {g} saves more money than it takes, because damage that never happens need not be repaired or paid for by anybody.", "The first bill for {g} falls due at once, while the savings are only hoped for, and a town in debt cannot live on hope."),
    ("fairness", "Those with little money gain most from {g}, since the wealthy could always buy the same advantage for themselves without any help from the rest of us.", "It is unfair to {i} at the expense of all when only some people ever benefit, and those who benefit seldom need it."),
    ("freedom", "Nobody loses a freedom that matters when we {i}; on the contrary, people gain time, safety and a real choice that they did not have before.", "Grown people can decide for themselves, and to {i} from above treats every citizen as a child who cannot be trusted with choices."),
    ("health", "Doctors would see fewer patients after a few years of {g}, because quieter and safer days spare the heart, the lungs and the nerves.", "The effect of {g} on health is uncertain at best, and money spent on it is missing where it surely heals, in clinics and in nursing."),
    ("evidence", "Where towns have begun with {g}, their own figures improved within a few years, and not one of them has gone back to the old way.", "The figures that speak for {g} come from small trials whose supporters counted themselves; nobody has measured it on the scale that is now proposed."),
    ("safety", "There would be fewer accidents if we were to {i}, for many of them happen precisely where nothing of the kind is in place today.", "New dangers come with {g}, and those who propose it have no plan for the day on which something goes wrong for the first time."),
    ("work", "It creates honest work to {i}, in planning, in building and in upkeep, and most of that work cannot be moved to another country.", "Whole trades would lose their living through {g}, and a new course at the job centre has never yet fed the family of a person of fifty."),
    ("children", "Children grow up with what they see, and {g} shows them each day that a community can agree on something sensible and carry it out.", "Children would pay for {g} with debts, rules or lost chances, although nobody has asked them and they cannot vote on it yet."),
    ("climate", "Emissions fall when we {i}, and every tonne that is not emitted makes the summers of the next generation a little less dangerous.", "For the climate {g} is a drop in the ocean; it calms the conscience and takes away the pressure to do what would really count."),
    ("practice", "It is simple to {i}: the means are there, the people know how, and a start can be made next month without waiting for a law.", "Whoever has to carry out {g} from day to day knows that it fails on small things, on staff, on spare parts, on weather and on keys."),
    ("tradition", "Customs have always changed when something better was found, and {g} will seem as natural in twenty years as running water does today.", "What has worked for generations should not be given up lightly, and {g} throws away an experience that took our grandparents long to gain."),
    ("trust", "People trust authorities more when they see results, and {g} is a result that each of them can walk past and look at every day.", "Trust is lost when promises break, and with {g} so much has been promised that disappointment is bound to follow at the next election."),
    ("alternatives", "All other proposals have been tried without success, so that {g} is no longer one choice of many but the one that remains open.", "There are cheaper and milder ways to the same end than {g}, and they have not even been tried in earnest by those who now demand it."),
    ("abuse", "Abuse is no reason against {g}, since every rule can be abused, and clear limits with regular checks have kept such cases rare elsewhere.", "Once it is allowed to {i}, somebody will make a business of it, and then the limits that are promised now will be moved step by step."),
    ("culture", "It brings neighbours to talk with each other when we {i}, and such talk is what keeps a place alive and lets newcomers feel at home.", "Every place has its own character, and {g} makes all of them alike until nobody can tell any more in which town he got off the train."),
    ("time", "An hour is won for everybody by {g}, and an hour a day for family, rest or study is worth more than most rises in pay.", "It takes years to {i}, and by then the problem will have changed so much that the answer fits a question nobody asks any longer."),
    ("research", "Scholars who studied {g} for years have come to the view that its benefits are real, and that doubts rest mostly on single cases.", "Scholars disagree about {g}, and as long as those who know most about it cannot agree, it would be reckless to make it the rule for all."),
    ("minorities", "Those who are easily overlooked, the old, the ill and the poor, gain a place in public life when we {i} and count them in from the start.", "The majority will get used to {g}, but those with special needs are left behind, as always when one solution is meant to fit everybody."),
    ("responsibility", "Somebody has to begin, and whoever can afford to {i} has the duty to do so before demanding the same from those who have less.", "It shifts responsibility to {i}, from those who cause the trouble to those who merely live with it, and lets the former go on as before."),
    ("experience", "I have lived where they {i}, and after a month of grumbling nobody there wanted to return to how things had been before.", "I have seen what comes of {g}: meetings without end, signs that nobody reads, and in the end everybody does what he did before."),
]  # fmt: skip

GENERATED_FROM = 1001  # number of the first generated argument on a question that also has real ones
# What an argument answers: the opposite claim about this one point of view. {G} is the gerund with a capital, {C} the answer
# to the whole question that stands behind it, for the points that decide it.
POINTS: dict[str, tuple[str, str]] = {
    "cost": ("{G} saves more money than it takes.", "The first bill for {g} falls due at once, and its savings are only hoped for."),
    "health": ("{G} spares the heart, the lungs and the nerves of patients.", "{G} has uncertain effects on health and takes money from clinics and nursing."),
    "evidence": ("The figures of towns that began with {g} improved.", "The figures that speak for {g} come from small trials."),
    "safety": ("{G} leads to fewer accidents.", "{G} brings new dangers for which nobody has a plan."),
    "work": ("{G} creates honest work that cannot be moved to another country.", "Whole trades lose their living through {g}."),
    "children": ("{G} shows children that a community can carry out something sensible.", "Children pay for {g} with debts, rules or lost chances."),
    "climate": ("Emissions fall through {g}, and summers become less dangerous.", "For the climate {g} is a drop in the ocean."),
    "practice": ("{G} is simple, and a start can be made next month.", "{G} fails from day to day on staff, spare parts and weather."),
    "alternatives": ("All proposals other than {g} have been tried without success.", "There are cheaper and milder ways than {g}, which have not been tried."),
    "abuse": ("Clear limits and regular checks keep abuse of {g} rare.", "Somebody will make a business of {g}, and the limits will be moved."),
    "culture": ("{G} brings neighbours to talk and lets newcomers feel at home.", "{G} makes all places alike and takes their character."),
    "time": ("An hour is won for family, rest or study by {g}.", "{G} takes years and answers a question that nobody asks any longer."),
    "research": ("Scholars who studied {g} have come to the view that its benefits are real.", "Scholars disagree about {g}, so that it would be reckless as a rule for all."),
    "fairness": ("{C}, and those with little money gain most from {g}.", "{C}, for {g} is unfair and only some people benefit."),
    "freedom": ("{C}, and nobody loses a freedom that matters by {g}.", "{C}, for grown people can decide about {g} themselves."),
    "tradition": ("{C}, for {g} will seem natural in twenty years.", "{C}, for {g} throws away the experience of generations."),
    "trust": ("{C}, for {g} gives people results and trust in authorities.", "{C}, for {g} promises so much that disappointment is bound to follow."),
    "responsibility": ("{C}, and whoever can afford {g} has the duty to begin.", "{C}, for {g} shifts responsibility from those who cause the trouble."),
    "experience": ("{C}, and after a month of grumbling over {g} nobody wants to return.", "{C}, for all that comes of {g} is meetings and signs that nobody reads."),
    "minorities": ("The old, the ill and the poor gain a place in public life through {g}.", "Those with special needs are left behind by {g}."),
}  # fmt: skip
FOR = re.compile(
    r"\b(benefit\w*|good|better|best|improve\w*|help\w*|save\w*|safe\w*|effective\w*|important|necessary|should be|right)\b",
    re.I,
)
AGAINST = re.compile(r"\b(not|no|never|harm\w*|danger\w*|risk\w*|wrong|bad|worse|worst|fail\w*|ban\w*|illegal|against|problem\w*|cannot|don't|doesn't|can't|isn't|unfair|kill\w*)\b", re.I)  # fmt: skip
RUDE = re.compile(r"\b(fuck\w*|shit\w*|bitch\w*|ass|asshole\w*|nigg\w*|fag\w*|slut\w*|whore\w*|rape\w*|retard\w*|vagina\w*|penis\w*|dick\w*|cunt\w*|damn\w*|crap\w*|idiot\w*|stupid\w*|dumb\w*|jew\w*|israel\w*|palestin\w*|laden|attacks|9/11|september|african|hispanic|muslim\w*|gay\w*|homosexual\w*|black people|suicid\w*)\b", re.I)  # fmt: skip
# What leans on a sentence before it, or on who speaks to whom, says nothing when it stands alone.
LEANS = re.compile(r"(?:he|his|she|her|they|their|them|this|that|these|those|it|its|also|and|but|so|or|yet|because|moreover|furthermore|additionally|likewise|similarly|conversely|instead|therefore|thus|hence|then|now|still|even so|if so|of course|in addition|in fact|as a result|as a matter|as we|as you|as i|as such|for example|for instance|for those|first|firstly|second|secondly|third|thirdly|next|finally|lastly|another|other|such|said|given|according to (?:this|that|him|her)|after (?:that|this|all)|without (?:that|this|doing)|by (?:this|that|far)|all of|at the beginning|here|there|maybe|perhaps|what|which|who|whatever|why|how|yes|no|well|okay|sure|again|anyway|however|although|though|while|like|unlike|just|only|clearly|obviously|basically|actually|i|my|we|our|you|your|me|let|let's|please|quote|reason|point|summary|benefits|the (?:difference|first|second|third|other|same|idea|two|above|evidence|ways?|pro|con|statistics?|study|article|point|fact|argument|question|answer|source|problem|reason|quote|increase|boys|stats?))\b", re.I)  # fmt: skip
NOISE = re.compile(r"(.)\1\1|\bdecember\b|\bstar wars\b|\b(my|your|you|argument\w*|arguing|argue|premise\w*|source\w*|topic|main point|as we can see|R\d+|etc|al\.|paragraph|he|she|him|his|her|i|i'm|i'll|i've|this|these|those|that's|conclusion|logically|ludicrous|lol)\b|\.\.|[;:]-|: ?-|\w\.[A-Z]|\d\.$|[\[\]<>{}|*_=]|\?|!|[^\x20-\x7e–—’“”]|''|^[A-Z][\w ]+: ", re.I)  # fmt: skip
TALK = re.compile(r"\b(my opponent\w*|opponent\w*|pro|con|round \d|rounds?|debat\w*|vote for|voters?|resolution|resolved|thank\w*|forfeit\w*|rebut\w*|refut\w*|contention|http\S*|www\S*|i accept|voting|extend|instigator)\b|\[\d|\d\)|\(\d", re.I)  # fmt: skip

# Words of the questions that say nothing of what they are about.
PALE = {
    "should", "allowed", "used", "be", "is", "are", "do", "does", "any", "a", "an", "the", "of", "in", "it",
    "to", "for", "have", "become", "accepted", "been", "who", "remain", "stay", "get", "good", "our", "not",
    "human", "humans", "improve", "process", "worth", "effectively", "people", "everyone", "required",
    "lowered", "increased", "their", "completed", "wear", "over", "scientific", "commercial", "activity",
    "responsible", "primarily", "directly", "made", "easier",
}  # fmt: skip


def on_the_question(question: str, sentence: str) -> bool:
    """Whether a sentence names what the question is about: it shares the beginning of one of its telling words."""
    telling = {w[:5] for w in re.findall(r"[a-z]+", question.lower()) if w not in PALE and len(w) > 2}
    return bool(telling & {w[:5] for w in re.findall(r"[a-z]+", sentence.lower())})


def real_sentences(path: Path) -> Iterator[tuple[str, str, str]]:
    """(question, id of the args.me argument, sentence) of every sentence that can stand alone as an argument."""
    seen: set[str] = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        source, _, copy = row["docid"].rpartition("_____")
        if copy != "1" or source in seen or row["query"] not in QUESTIONS:
            continue
        seen.add(source)
        said: set[str] = set()
        for sentence in re.split(r"(?<=[.!?])\s+", " ".join(row["text"].split())):
            words = sentence.split()
            whole = (
                re.match(r"[A-Z][a-z' ,]", sentence) and sentence[-1] == "." and sentence.count('"') % 2 == 0
            )
            odd = any(p.search(sentence) for p in (RUDE, TALK, NOISE)) or LEANS.match(sentence)
            if 9 <= len(words) <= 60 and whole and not odd and on_the_question(row["query"], sentence):
                if sentence not in said:
                    yield row["query"], source, sentence
                said.add(sentence)


def stands_for(sentence: str) -> bool:
    """A weak guess of a sentence's stance from its words; a tie counts as for. README.md says how weak."""
    return len(FOR.findall(sentence)) >= len(AGAINST.findall(sentence))


def argument(
    number: str, topic: str, tags: list[str], attacks: str, supports: str, text: str, original: str
) -> Row:
    """One argument in the form of the official index."""
    return {
        "id": number,
        "topic": topic,
        "tags": tags,
        "attacks": attacks,
        "supports": supports,
        "text": text,
        "references": [],
        "original": original,
    }


def from_argsme(path: Path) -> Iterator[Row]:
    """Real sentences of args.me; which claim each supports is guessed from its words."""
    count: dict[str, int] = {}
    numbers = {q: 30001 + i for i, q in enumerate(QUESTIONS)}
    for question, _, sentence in real_sentences(path):
        pro, con, tags = QUESTIONS[question]
        supports, attacks = (pro, con) if stands_for(sentence) else (con, pro)
        count[question] = count.get(question, 0) + 1
        yield argument(
            f"{numbers[question]}.{count[question]}", question, tags, attacks, supports, sentence, "supports"
        )


def from_genirsim(path: Path) -> Iterator[Row]:
    """Arguments of the official index as they stand in published simulations, unchanged but for key and score."""
    seen: set[str] = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        for turn in json.loads(line)["simulation"]["userTurns"]:
            for row in turn["systemResponse"]["response"]["arguments"]:
                if row["id"] not in seen:
                    seen.add(row["id"])
                    yield {k: v for k, v in row.items() if k not in ("key", "score")}


def generated() -> Iterator[Row]:
    """Arguments made from templates: every subject seen from every point of view, for and against."""
    numbers = {q: 30001 + i for i, q in enumerate(QUESTIONS)}
    debates = [(numbers[q], GENERATED_FROM, q, *QUESTIONS[q], *words) for q, words in ASKED.items()]
    debates += [
        (40001 + s, 1, f"Should we {i}?", f"We should {i}.", f"We should not {i}.", tags, g, i)
        for s, (g, i, tags) in enumerate(SUBJECTS)
    ]
    for debate, first, topic, pro, con, tags, gerund, infinitive in debates:
        number = first - 1
        words = {"g": gerund, "i": infinitive, "G": gerund[0].upper() + gerund[1:]}
        for name, for_it, against_it in ASPECTS:
            good, bad = (
                p.format(**words, C=claim.rstrip("."))
                for p, claim in zip(POINTS[name], (pro, con), strict=True)
            )
            for template, supports, attacks in ((for_it, good, bad), (against_it, bad, good)):
                number += 1
                text = template.format(**words)
                yield argument(f"{debate}.{number}", topic, tags, attacks, supports, text, "attacks")


def claims(rows: list[tuple[str, bool, str]], first: int) -> str:
    """The lines of a claims file."""
    lines = []
    for number, (question, positive, why) in enumerate(rows, start=first):
        pro, con, _ = QUESTIONS[question]
        row = {"id": f"demo-{number:03d}", "claim": pro if positive else con, "description": why}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return "".join(lines)


def main(argsme: Path, genirsim: Path) -> int:
    """Write everything. Returns the exit code."""
    groups = {
        "genirsim": list(from_genirsim(genirsim)),
        "args.me": list(from_argsme(argsme)),
        "generated": list(generated()),
    }
    rows = [row for group in groups.values() for row in group]
    folder = HERE / "services" / "arguments"
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="", compresslevel=9) as file:
        file.write(text)
    (folder / "arguments.jsonl.gz").write_bytes(packed.getvalue())
    facts = {
        "sha256": hashlib.sha256(text).hexdigest(),
        "arguments": len(rows),
        "groups": {name: {"count": len(g), "ids": [g[0]["id"], g[-1]["id"]]} for name, g in groups.items()},
    }
    (HERE / "provenance.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    for dataset, chosen, first in (("train", TRAIN, 1), ("test", TEST, len(TRAIN) + 1)):
        inputs = HERE / "datasets" / dataset / "inputs"
        inputs.mkdir(parents=True, exist_ok=True)
        (inputs / "claims.jsonl").write_text(claims(chosen, first), encoding="utf-8")
    print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python generate.py ARGSME GENIRSIM (README.md says where they come from)")
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
