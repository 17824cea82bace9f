"""The output of `--json` has exactly the keys and types of the published schema."""

from __future__ import annotations

import json
import re

import pytest
import typer

from shoal.app.cli import app

COMMANDS = typer.main.get_command(app).commands
#: Every command that has --json, and the outputs of each.
WITH_JSON = [
    name for name, command in COMMANDS.items() if any("--json" in p.opts for p in command.params)
]
TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
KEYWORDS = {"description", "type", "properties", "required", "items", "additionalProperties"}
KEYWORDS |= {"enum", "const", "anyOf", "$ref"}
STUDY = """
[[tables]]
path = "people.csv"
without = ["email"]
target = "diagnosis"
[[variants]]
name = "round"
steps = [{ method = "round" }]
grid = { base = [5, 20] }
[[measures]]
measure = "uniqueness"
"""


@pytest.fixture(scope="module")
def schema(repository):
    return json.loads((repository / "docs/schemas/command-line-1.json").read_text("utf-8"))


def is_of(value, kind: str) -> bool:
    as_number = kind in ("integer", "number") and isinstance(value, bool)
    return isinstance(value, TYPES[kind]) and not as_number


def faults(value, said, schema, at="") -> list[str]:
    """Where a value differs from its schema; a key that is not listed is a fault here."""
    assert said.keys() <= KEYWORDS, said.keys()
    if "$ref" in said:
        return faults(value, schema["$defs"][said["$ref"].rpartition("/")[2]], schema, at)
    if "anyOf" in said:
        each = [faults(value, one, schema, at) for one in said["anyOf"]]
        return [] if [] in each else each[0]
    if "const" in said and value != said["const"]:
        return [f"{at} is not {said['const']}"]
    if "enum" in said and value not in said["enum"]:
        return [f"{at} is none of {said['enum']}"]
    kinds = said.get("type", [])
    if kinds and not any(is_of(value, kind) for kind in [kinds] * isinstance(kinds, str) or kinds):
        return [f"{at} is a {type(value).__name__}, not {kinds}"]
    found = []
    if isinstance(value, list) and "items" in said:
        for one in value:
            found += faults(one, said["items"], schema, f"{at}[]")
    if isinstance(value, dict) and "type" in said:
        known, more = said.get("properties", {}), said.get("additionalProperties", False)
        found += [
            f"{at}.{name} is missing" for name in said.get("required", []) if name not in value
        ]
        for name, one in value.items():
            if name in known:
                found += faults(one, known[name], schema, f"{at}.{name}")
            elif more is False:
                found.append(f"{at}.{name} is not in the schema")
            elif more is not True:
                found += faults(one, more, schema, f"{at}.{name}")
    return found


@pytest.fixture
def printed(shoal, schema):
    """Run a command with --json; the document, once it is as its schema says."""

    def run(output, *words, code=0):
        result = shoal(*words, "--json")
        assert result.exit_code == code, result.stderr
        document = json.loads(result.stdout)
        assert faults(document, schema["$defs"][f"output-{output}"], schema) == []
        return document

    return run


def test_every_command_with_json_has_a_schema_and_a_line_on_the_page(schema, repository):
    outputs = {name.removeprefix("output-") for name in schema["$defs"] if "output-" in name}
    assert set(WITH_JSON) <= outputs
    assert {one["$ref"] for one in schema["anyOf"]} == {f"#/$defs/output-{o}" for o in outputs}
    page = (repository / "docs" / "platform.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([^`]*)` \| (.*) \|$", page, flags=re.M))
    for output in outputs:
        about = schema["$defs"][f"output-{output}"]
        title = "failure" if output == "failure" else about["description"]
        told = rows[title.removeprefix("shoal ").partition(",")[0]]
        named = set(re.findall(r"`(\w+)`", told))
        keys = set(about["properties"]) - {"schema"}
        assert keys == named, output


def test_the_schema_says_what_differs(schema):
    """The check of these tests can fail."""
    said = schema["$defs"]["output-sign"]
    good = {"schema": 1, "release": "r", "signed_by": "me"}
    assert faults(good, said, schema) == []
    for bad in ({"schema": 2}, {"release": 3}, {"more": 1}):
        assert faults(good | bad, said, schema) != []
    assert faults({"schema": 1, "release": "r"}, said, schema) != []


def test_reading_and_planning(printed, people):
    assert printed("roles", "roles", people)["rows"] == 40
    printed("init", "init", people, "--out", "first.toml")
    printed("hierarchy", "hierarchy", people, "age")
    printed("key", "key", "patients.key")
    printed("hierarchy", "hierarchy", people, "sex", "--kind", "frequency", "--out", "sex.csv")


def test_a_release(printed, people, plan):
    printed("protect-dry-run", "protect", people, "--plan", plan, "--dry-run")
    printed("protect", "protect", people, "--plan", plan, "--out", "release")
    printed("verify", "verify", "release", "--original", people)
    printed("assess", "assess", "release", "--original", people)
    printed("assess", "assess", people, "--plan", plan, "--k-curve")


def test_a_swap_of_persons(printed, people, tmp_path):
    (tmp_path / "swap.toml").write_text(
        '[roles]\nunit = "email"\nquasi_identifiers = ["age", "sex"]\n'
        'sensitive = ["diagnosis"]\n[[steps]]\nmethod = "swap"\nk = 8\n'
    )
    made = printed("protect", "protect", people, "--plan", "swap.toml", "--out", "swapped")
    assert made["after"]["swapping"] is not None


def test_a_signature(printed, people, plan, tmp_path):
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    written = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
    (tmp_path / "key").write_bytes(written)
    (tmp_path / "key").chmod(0o600)
    printed("protect", "protect", people, "--plan", plan, "--out", "release")
    signed = printed("sign", "sign", "release", "--key", "key")
    assert printed("verify", "verify", "release")["signed_by"] == signed["signed_by"]


def test_failures(printed, people, plan):
    printed("failure", "verify", "nowhere", code=2)
    printed("failure", "roles", code=2)
    strict = "[require]\nmax_uniqueness = 0.5\nk_anonymity = 12"
    plan.write_text(plan.read_text("utf-8").replace("[require]\nk_anonymity = 5", strict))
    told = printed("failure", "protect", people, "--plan", plan, "--out", "out", code=1)
    assert told["requirements"]
    assert told["steps"]
    text = plan.read_text("utf-8").replace('sensitive = ["diagnosis"]\n', "")
    plan.write_text(text.replace("k_anonymity = 12", "k_anonymity = 2"))
    words = ("protect", people, "--plan", plan, "--dry-run", "--strict")
    assert printed("failure", *words, code=1)["warnings"]


def test_what_is_shipped(printed):
    assert printed("demo", "demo")["verified"]
    printed("methods", "methods")
    printed("methods-name", "methods", "suppress")
    printed("warm", "warm", "round")


def test_studies(printed, people, tmp_path):
    printed("study-list", "study", "list")
    pytest.importorskip("matplotlib")
    (tmp_path / "mine.toml").write_text(STUDY)
    printed("study", "study", "mine.toml", "--out", "out", "--jobs", 1)
    printed("study", "study", "show", "out")


def test_a_search(printed, tmp_path, monkeypatch):
    pytest.importorskip("optuna")
    from shoal.study.tuning import Family

    rows = [f"{20 + n * 7 % 60},{'fm'[n % 2]},{'yn'[n * 7 % 60 > 30]}" for n in range(240)]
    (tmp_path / "ill.csv").write_text("\n".join(["age,sex,ill", *rows]) + "\n")
    (tmp_path / "roles.toml").write_text('[roles]\nquasi_identifiers = ["age", "sex"]\n')
    space = [Family("round", ({"method": "round"},), {"0.base": (20, 40)})]
    monkeypatch.setattr("shoal.study.tuning._tune.default_space", lambda table: space)
    words = ("--plan", "roles.toml", "--target", "ill", "--max-risk", 0.9, "--out", "tuned")
    printed("tune", "tune", "ill.csv", *words)
