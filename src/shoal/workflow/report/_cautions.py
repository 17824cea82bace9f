"""What a reader must not conclude from a release: each false conclusion, and what is true."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.workflow._plan import minimality_in_words
from shoal.workflow.report import _words
from shoal.workflow.report._swapping import SwapWords, swap_words

if TYPE_CHECKING:
    from shoal.workflow._protect import Release

#: Models that speak about what a crowd says of its members, not only about who is in it.
_ABOUT_CONTENT = ("l_diversity", "t_closeness")


@dataclass(frozen=True)
class Caution:
    """A conclusion that does not follow, why not, and the columns it is about."""

    wrong: str
    truth: str
    columns: tuple[str, ...] = ()


def cautions_about_people(release: Release, facts: Mapping[str, Any]) -> list[Caution]:
    """What does not follow for the people in the table."""
    swapped = swap_words(release, facts)
    return [
        *(_about_risk(facts) if swapped is None else _about_swap(swapped)),
        *_about_claims(release, facts),
        *_about_knowledge(release),
        *_about_steps(facts),
        Caution(
            "The table is anonymous in the sense of the law.",
            "That is a judgement about the data, who gets them and what else is known. This "
            "report gives measurements for it. Further releases about the same people can add up "
            "with this one; each is measured alone.",
        ),
    ]


def cautions_about_numbers(release: Release, facts: Mapping[str, Any]) -> list[Caution]:
    """What does not follow for the statistics made from the table."""
    return [*_about_removals(release, facts), *_about_values(facts), *_about_formulas(facts)]


def _about_risk(facts: Mapping[str, Any]) -> Iterator[Caution]:
    measured = facts["measured"]
    risk = measured["prosecutor_risk"]
    alone = measured["uniqueness"]
    if alone > 0:
        yield Caution(
            "Everybody is hidden.",
            f"{_words.percent(100 * alone)} of the released records are alone with their "
            "combination of quasi-identifiers: whoever knows it finds them.",
        )
        return
    yield Caution(
        "There is no risk left.",
        "Somebody who knows the quasi-identifiers of a person in the table, and guesses which "
        f"record it is, is right with a chance of up to {_words.chance(risk)}, on average "
        f"{_words.percent(100 * measured['marketer_risk'])}.",
    )


def _about_swap(swapped: SwapWords) -> Iterator[Caution]:
    if swapped.measured is None:
        tried = "The table is too small to tell how often that was right."
    else:
        tried = f"When it was tried, that was right for {swapped.measured}."
    who = (
        "Somebody who finds the record of a person and takes its sensitive value for the person's"
        if swapped.informed
        else "Somebody who knows the quasi-identifiers of a person and takes the nearest record"
    )
    yield Caution(
        "There is no risk left.",
        f"{who} is right with a chance of up to 1 in {swapped.k:,}. {tried}",
    )
    for sentence, columns in swapped.leaks:
        yield Caution(f"1 in {swapped.k:,} holds whatever is known.", sentence, columns)


def _about_claims(release: Release, facts: Mapping[str, Any]) -> Iterator[Caution]:
    keys = {claim["claim"] for claim in facts["claims"]}
    if not keys:
        yield Caution(
            "Something is promised.",
            "The plan required nothing. The numbers here describe the table; none of them was a "
            "condition for its release.",
        )
    if any(claim["rests_on_seed"] for claim in facts["claims"]):
        yield Caution(
            "Chance hides who is who from everybody.",
            "Values were drawn under a seed, which the plan accepts. Whoever learns or guesses the "
            "seed may draw them again and undo the release, whatever is claimed here.",
        )
    others = [c for c in facts["data"]["columns"] if c["role"] != "quasi_identifiers"]
    if others and not keys & set(_ABOUT_CONTENT):
        sensitive = release.masked.roles.sensitive
        yield Caution(
            "Who cannot be found cannot be harmed.",
            "A crowd hides which record is yours, not what the crowd has in common. Where all "
            "records of a crowd say the same, they tell it of everybody in it, and nobody need "
            "be found. This release makes no claim against that"
            + (", not for the sensitive columns either:" if sensitive else "."),
            sensitive,
        )
    if "rarest_history" in facts["measured"]:
        yield Caution(
            "Whoever knows several records of a person finds no more than a crowd.",
            "A person may have several records here, and k counts persons: by one record, a person "
            "is in a crowd of them. By all records of a person together, the person's history, the "
            f"smallest crowd has {_words.counted(facts['measured']['rarest_history'], 'person')}.",
        )
    if any(_is_wildcard(claim["requirement"]) for claim in facts["claims"]):
        yield Caution(
            "Everybody shares all values with the crowd.",
            "A missing quasi-identifier counts here as agreeing with every value, as the "
            "statistics offices do. Counted as a value of its own, the smallest crowd has "
            f"{_words.counted(facts['measured']['k'], 'record')}.",
        )


def _about_knowledge(release: Release) -> Iterator[Caution]:
    quasi = release.masked.roles.quasi_identifiers
    others = tuple(name for name in release.masked.columns if name not in quasi)
    known = (
        "It was measured for somebody who knows the declared quasi-identifiers and nothing else. "
        "Whoever also knows something that is not in the table may single a person out"
    )
    if not quasi:
        truth = (
            "Every declared quasi-identifier was taken out, so the measured risk says nothing "
            "about somebody who knows one of the columns that are left:"
        )
    elif others:
        truth = f"{known}, and so may whoever knows one of these columns, which took no part:"
    else:
        truth = f"{known}."
    yield Caution("The risk is the same whatever an intruder knows.", truth, others)
    kept = [c.name for c in release.columns if c.status == "unchanged"]
    if kept:
        yield Caution(
            "Every column was masked.",
            "These columns left exactly as they came, in every released record:",
            tuple(kept),
        )


def _about_steps(facts: Mapping[str, Any]) -> Iterator[Caution]:
    for found in (step["facts"].get("minimality") for step in facts["methods"]):
        if found is not None:
            yield Caution(
                "Coarse values say nothing finer.",
                minimality_in_words(found, named=False)
                + " The search was for the least loss, so it made nothing coarser without need, "
                "and its choices can be followed back. Columns:",
                tuple(found["columns"]),
            )
    noisy = [step for step in facts["methods"] if step["method"] == "add_noise"]
    if noisy:
        yield Caution(
            "The noise gives differential privacy.",
            "It does not: its size comes from the data themselves, and epsilon only sets how "
            "large it is. No bound on what can be learned follows from it. Columns with noise:",
            _columns_of(noisy),
        )
    swapped = [step for step in facts["methods"] if step["method"] == "swap"]
    if swapped:
        yield Caution(
            "Whoever finds a matching record has found the person.",
            "Values were exchanged among similar records, so a match may be another person's; the "
            "sizes of crowds do not know of it. The bound of one in k is "
            "for links by the swapped columns alone: columns that stayed in place link a record "
            "as before, and strong correlations narrow down who is who. Swapped columns:",
            _columns_of(swapped),
        )
    if not facts["data"]["shuffled"]:
        yield Caution(
            "The order of the rows tells nothing.",
            "The plan kept the order of the input. Whoever knows that order knows whose row is "
            "whose.",
        )


def _about_removals(release: Release, facts: Mapping[str, Any]) -> Iterator[Caution]:
    removed = facts["records_removed"]
    if removed:
        verb = "was" if removed == 1 else "were"
        yield Caution(
            "The table is complete.",
            f"{_words.counted(removed, 'record').capitalize()} {verb} taken out, and rarely at "
            "random: people with rare combinations go first. Totals are too small, and small "
            "groups are missing more often than large ones. That somebody is not in the table "
            "says nothing about them.",
        )
    blanked = [s for s in facts["methods"] if s["method"] == "suppress" and _made_missing(s)]
    if _columns_of(blanked):
        yield Caution(
            "A missing value was never given.",
            "Cells of these columns were made missing to protect people:",
            _columns_of(blanked),
        )
    gone = [c.name for c in release.columns if c.status == "removed"]
    if gone:
        yield Caution(
            "These are all columns that were collected.",
            "Besides identifiers, these columns were taken out:",
            tuple(gone),
        )


def _about_values(facts: Mapping[str, Any]) -> Iterator[Caution]:
    def columns(*methods: str) -> tuple[str, ...]:
        return _columns_of([s for s in facts["methods"] if s["method"] in methods])

    if columns("add_noise", "round", "recode"):
        yield Caution(
            "A number in the table is somebody's number.",
            "These columns were rounded, put into ranges named by their lower limit, or given "
            "noise. Averages move accordingly: ranges named by their lower limit make them "
            "too small.",
            columns("add_noise", "round", "recode"),
        )
    if columns("top_bottom_code"):
        yield Caution(
            "The largest and smallest numbers are real.",
            "Extremes of these columns were drawn in, so that spread, maxima and shares at the "
            "very top are too small:",
            columns("top_bottom_code"),
        )


def _about_formulas(facts: Mapping[str, Any]) -> Iterator[Caution]:
    told = facts["data"]["formulas"]
    columns = () if told is None else tuple(dict.fromkeys([*told["cells"], *told["names"]]))
    if not columns:
        return
    what = "Names or texts of these columns begin like a formula of a spreadsheet."
    if told["handling"] == "neutralised":
        yield Caution(
            "Every text is written as it is.",
            f"{what} An apostrophe stands before them, so that a spreadsheet does not run them; "
            "it is not part of the text:",
            columns,
        )
    else:
        yield Caution(
            "The file can be opened with a spreadsheet without a thought.",
            f"{what} They were written as they are, and a spreadsheet may run them:",
            columns,
        )


def _columns_of(steps: list[Any]) -> tuple[str, ...]:
    named = (name for step in steps for name in step["columns"])
    return tuple(dict.fromkeys(named))


def _made_missing(step: Mapping[str, Any]) -> bool:
    rules = step["parameters"]
    return (
        "max_distinct" not in rules
        and "min_class_size" not in rules
        and rules.get("target") != "records"
    )


def _is_wildcard(requirement: Any) -> bool:
    return isinstance(requirement, Mapping) and requirement.get("missing") == "wildcard"
