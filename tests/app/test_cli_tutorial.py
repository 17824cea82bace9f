"""The README and the tutorial for stewards do what they show: every command, in order."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess

import pytest

from shoal.app.demo import PEOPLE

BLOCK = re.compile(r"^( *)```(sh|text|toml)\n(.*?)^ *```", re.M | re.S)
PATIENTS = PEOPLE.with_name("patients.csv")
TUTORIAL = "docs/tutorials/steward.md"


def words_of(text: str) -> str:
    """The text without rules and line ends, so that a fold does not count."""
    return " ".join(re.sub("─+", "", text).split())


def into_the_plan(text: str, plan: str) -> str:
    """The plan after what a reader adds to it: lines for [roles], or another [require]."""
    if text.startswith("[require]"):
        return plan[: plan.index("[require]")] + text
    return plan.replace("[roles]\n", f"[roles]\n{text}", 1)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_the_tutorial_as_written(shoal, repository, tmp_path):
    shutil.copy(PATIENTS, tmp_path)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    shutil.move(tmp_path / "key.pub", tmp_path / "steward.pub")
    plan, printed, ran = tmp_path / "plan.toml", "", 0
    for _, kind, text in BLOCK.findall((repository / TUTORIAL).read_text("utf-8")):
        if kind == "toml":
            plan.write_text(into_the_plan(text, plan.read_text()))
        elif kind == "text" and "failed" not in text:  # nobody changes a byte here
            assert [line for line in text.splitlines() if words_of(line) not in printed] == []
        elif kind == "sh" and text.strip().startswith("shoal "):
            words = shlex.split(text.replace("~/.ssh/id_ed25519", str(key)))
            if words[1] == "verify" and "--signer" in words:
                words[2] = "release/public"
            result = shoal(*words[1:])
            if "With k = 20 in step 1 it holds" in words_of(result.stderr):
                assert result.exit_code == 1
                assert not (tmp_path / "release").exists()
                plan.write_text(plan.read_text().replace("\nk = 5\n", "\nk = 20\n", 1))
                assert shoal(*words[1:]).exit_code == 0
            else:
                assert result.exit_code == 0, result.stderr
            printed, ran = words_of(result.stderr + result.stdout), ran + 1
    assert ran == 9
    assert (tmp_path / "after.html").is_file()


def test_the_readme_as_written(shoal, repository, tmp_path):
    shutil.copy(PEOPLE, tmp_path)
    text = (repository / "README.md").read_text("utf-8")
    demo = words_of(shoal("demo").stdout)
    shown = next(block for _, kind, block in BLOCK.findall(text) if kind == "text")
    assert words_of(shown) in demo
    part = text[text.index("## On the command line") : text.index("## In Python")]
    blocks = {kind: block for _, kind, block in BLOCK.findall(part)}
    commands = [shlex.split(line, comments=True) for line in blocks["sh"].splitlines()]
    assert [words[1] for words in commands] == ["roles", "init", "assess", "protect", "verify"]
    for words in commands:
        assert shoal(*words[1:]).exit_code == 0
    (tmp_path / "plan.toml").write_text(blocks["toml"])
    assert shoal(*commands[3][1:], "--force").exit_code == 0
    assert shoal(*commands[4][1:]).exit_code == 0
