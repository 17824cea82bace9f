"""``shoal sign`` and ``shoal verify --signer``, as people type them."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from shoal.app.cli import _verify

KEYGEN = shutil.which("ssh-keygen")
pytestmark = pytest.mark.skipif(KEYGEN is None, reason="ssh-keygen is not installed")
PASSPHRASE = "correct horse"


@pytest.fixture
def key(tmp_path):
    return make_key(tmp_path / "steward", "")


@pytest.fixture
def encrypted(tmp_path):
    return make_key(tmp_path / "encrypted", PASSPHRASE)


def make_key(path, passphrase):
    words = ["-q", "-t", "ed25519", "-N", passphrase, "-C", "steward", "-f", str(path)]
    subprocess.run([KEYGEN, *words], check=True)
    return path


@pytest.fixture
def release(shoal, people, plan):
    assert shoal("protect", people, "--plan", plan, "--out", "release").exit_code == 0
    return people.parent / "release"


def words_of(result):
    return " ".join(result.stdout.split())


def test_sign_and_verify(shoal, release, key):
    signed = shoal("sign", "release", "--key", key)
    assert signed.exit_code == 0
    assert "signed by SHA256:" in words_of(signed)
    found = shoal("verify", "release", "--signer", f"{key}.pub")
    assert found.exit_code == 0
    assert "expect as --signer" not in words_of(found)
    facts = json.loads(shoal("verify", "release", "--signer", f"{key}.pub", "--json").stdout)
    assert facts["signature"] == "passed"
    again = json.loads(shoal("sign", "release", "--key", key, "--json").stdout)
    assert again == {"schema": 1, "release": "release", "signed_by": facts["signed_by"]}


def test_a_recipient_learns_who_released_it(shoal, release, key):
    """With a public half and a signer nothing is left that could not be checked."""
    shoal("sign", "release", "--key", key)
    shutil.rmtree(release / "private")
    unnamed = shoal("verify", "release/public")
    assert unnamed.exit_code == 0
    assert "signed by SHA256:" in words_of(unnamed)
    assert "the private half" in words_of(unnamed)
    named = shoal("verify", "release/public", "--signer", f"{key}.pub")
    assert named.exit_code == 0
    assert "cannot be checked" not in words_of(named)


def test_a_release_of_somebody_else_is_refused(shoal, release, key, encrypted):
    unsigned = shoal("verify", "release", "--signer", f"{key}.pub")
    assert unsigned.exit_code == 1
    assert "not signed" in words_of(unsigned)
    shoal("sign", "release", "--key", key)
    assert shoal("verify", "release", "--signer", f"{encrypted}.pub").exit_code == 1


def test_a_changed_release_is_not_signed(shoal, release, key):
    data = release / "public" / "data.csv"
    data.write_text(data.read_text() + "20,f,flu\n")
    result = shoal("sign", "release", "--key", key)
    assert result.exit_code == 1
    assert "does not verify" in result.stderr
    assert not (release / "public" / "release.json.sig").exists()


def test_a_passphrase_from_a_file(shoal, release, encrypted, tmp_path):
    file = tmp_path / "passphrase"
    file.write_text(f"{PASSPHRASE}\nmore\n")
    signed = shoal("sign", "release", "--key", encrypted, "--passphrase-file", file)
    assert signed.exit_code == 0, signed.stderr
    file.write_text("wrong\n")
    for given in (file, tmp_path / "nothing"):
        result = shoal("sign", "release", "--key", encrypted, "--passphrase-file", given)
        assert result.exit_code == 2
        assert result.stderr.startswith("shoal: ")
        assert "wrong" not in result.stderr


def test_a_passphrase_is_asked_for_on_a_terminal(shoal, release, encrypted, monkeypatch):
    asked = []

    def answer(prompt):
        asked.append(prompt)
        return PASSPHRASE

    monkeypatch.setattr(_verify.getpass, "getpass", answer)
    monkeypatch.setattr(_verify, "_has_terminal", lambda: True)
    assert shoal("sign", "release", "--key", encrypted).exit_code == 0
    assert len(asked) == 1


def test_without_a_terminal_nobody_is_asked(shoal, release, encrypted):
    result = shoal("sign", "release", "--key", encrypted)
    assert result.exit_code == 2
    assert "--passphrase-file" in result.stderr


@pytest.mark.parametrize("which", ["nothing", "steward.pub", "people.csv"])
def test_a_key_that_is_none_is_one_sentence(shoal, release, key, which, tmp_path):
    result = shoal("sign", "release", "--key", tmp_path / which)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("shoal: ")


def test_a_signer_that_is_none_is_a_wrong_call(shoal, release, key):
    assert shoal("verify", "release", "--signer", "nothing").exit_code == 2
    assert shoal("verify", "release", "--signer", key).exit_code == 2


# -- the file that was released


def test_the_original_is_compared_with_the_file_that_was_released(shoal, release, people):
    facts = json.loads(shoal("verify", "release", "--original", people, "--json").stdout)
    outcome = {check["name"]: check["status"] for check in facts["checks"]}
    assert outcome["source of the release"] == "passed"
    people.write_text(people.read_text().replace("person-1@", "person-x@"))
    result = shoal("verify", "release", "--original", people)
    assert result.exit_code == 1
    assert "not the file that was released" in words_of(result).replace("│", "")
