"""Signing a release and asking who signed it, with OpenSSH itself as the judge."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess

import pytest

from shoal import protect, sign, verify
from shoal.errors import InputError, ReleaseError, VerificationFailed
from shoal.workflow.release import _signing
from shoal.workflow.release._signature import Signature, armored

from ..samples import people, plan

KEYGEN = shutil.which("ssh-keygen")
pytestmark = pytest.mark.skipif(KEYGEN is None, reason="ssh-keygen is not installed")
PASSPHRASE = "correct horse"
KINDS = {
    "ed25519": ("-t", "ed25519"),
    "ecdsa-256": ("-t", "ecdsa", "-b", "256"),
    "ecdsa-384": ("-t", "ecdsa", "-b", "384"),
    "ecdsa-521": ("-t", "ecdsa", "-b", "521"),
    "rsa": ("-t", "rsa", "-b", "2048"),
    "rsa of PEM": ("-t", "rsa", "-b", "2048", "-m", "PEM"),
}


def keygen(*words, **options):
    done = subprocess.run([KEYGEN, *map(str, words)], capture_output=True, check=False, **options)
    return done.returncode == 0, done.stdout


def make_key(path, *kind, passphrase=""):
    assert keygen("-q", *kind, "-N", passphrase, "-f", path, "-C", "steward@example.org")[0]
    return path


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    made = {name: make_key(folder / name.replace(" ", ""), *kind) for name, kind in KINDS.items()}
    made["other"] = make_key(folder / "other", "-t", "ed25519")
    made["encrypted"] = make_key(folder / "encrypted", "-t", "ed25519", passphrase=PASSPHRASE)
    return made


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return protect(people(), plan()).save(tmp_path_factory.mktemp("release") / "out")


@pytest.fixture
def out(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "out")


def public(key):
    return key.with_name(f"{key.name}.pub")


def signature(found):
    return next(check for check in found.checks if check.name == "signature")


# -- with OpenSSH


@pytest.mark.parametrize("kind", KINDS)
def test_openssh_accepts_what_shoal_signs(out, keys, kind, tmp_path):
    fingerprint = sign(out, key=keys[kind])
    _, told = keygen("-l", "-f", public(keys[kind]))
    assert fingerprint in told.decode()
    allowed = tmp_path / "allowed"
    allowed.write_text(f"steward@example.org {public(keys[kind]).read_text()}")
    words = ("-Y", "verify", "-f", allowed, "-I", "steward@example.org", "-n", "shoal-release")
    facts = (out / "public" / "release.json").read_bytes()
    file = out / "public" / "release.json.sig"
    assert keygen(*words, "-s", file, input=facts)[0]
    assert not keygen(*words, "-s", file, input=facts + b"\n")[0]


@pytest.mark.parametrize("kind", KINDS)
def test_shoal_accepts_what_openssh_signs(out, keys, kind):
    """The name that OpenSSH gives the file is the one that Shoal looks for."""
    file = out / "public" / "release.json"
    assert keygen("-Y", "sign", "-n", "shoal-release", "-f", keys[kind], file)[0]
    found = verify(out, signer=public(keys[kind]))
    assert found.holds, str(found)
    assert found.signature == "passed"
    assert (
        found.signed_by
        == Signature.parse(file.with_name(f"{file.name}.sig").read_bytes()).fingerprint
    )


def test_a_signature_for_something_else_does_not_count(out, keys):
    file = out / "public" / "release.json"
    assert keygen("-Y", "sign", "-n", "git", "-f", keys["ed25519"], file)[0]
    found = verify(out, signer=public(keys["ed25519"]))
    assert "not made for" in signature(found).detail
    assert not found.holds
    assert not verify(out).holds


# -- who signed


def test_a_signed_release_says_by_whom(out, keys):
    fingerprint = sign(out, key=keys["ed25519"])
    named = verify(out, signer=public(keys["ed25519"]))
    assert named.holds
    assert signature(named).detail == f"signed by {fingerprint} (steward@example.org)"
    unnamed = verify(out)
    assert unnamed.holds
    assert (unnamed.signature, unnamed.signed_by) == ("skipped", fingerprint)
    assert "not checked against" in signature(unnamed).detail
    told = named.to_dict()
    assert (told["signature"], told["signed_by"]) == ("passed", fingerprint)


def test_the_public_half_alone_is_signed_and_checked(out, keys):
    sign(out / "public", key=keys["ed25519"])
    shutil.rmtree(out / "private")
    assert verify(out / "public", signer=public(keys["ed25519"])).signature == "passed"


def test_an_unsigned_release_fails_where_a_signer_is_named(out, keys):
    found = verify(out, signer=public(keys["ed25519"]))
    assert not found.holds
    assert "not signed" in signature(found).detail
    assert verify(out).signature is None


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_no_signature_is_looked_for_behind_a_link(out, keys, tmp_path):
    sign(out, key=keys["ed25519"])
    (out / "public").rename(tmp_path / "elsewhere")
    (out / "public").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    found = verify(out, signer=public(keys["ed25519"]))
    assert [check.name for check in found.checks] == ["plain files"]
    assert not found.holds
    with pytest.raises(VerificationFailed):
        sign(out, key=keys["ed25519"])


def test_another_signer_fails(out, keys):
    sign(out, key=keys["other"])
    found = verify(out, signer=public(keys["ed25519"]))
    assert not found.holds
    assert found.signed_by is None
    assert "not a key of the signer" in signature(found).detail


def test_a_signature_of_another_release_fails(out, keys, tmp_path):
    other = protect(people(), plan(k=2)).save(tmp_path / "other")
    sign(other, key=keys["ed25519"])
    shutil.copy(other / "public" / "release.json.sig", out / "public" / "release.json.sig")
    assert verify(out).signature == "failed"
    assert verify(out, signer=public(keys["ed25519"])).signature == "failed"


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa-256", "rsa"])
def test_every_byte_of_a_signature_counts(out, keys, kind):
    sign(out, key=keys[kind])
    file = out / "public" / "release.json.sig"
    whole = Signature.parse(file.read_bytes())
    facts = (out / "public" / "release.json").read_bytes()
    assert whole.covers(facts)
    for at in range(0, len(whole.content), 3):
        content = bytearray(whole.content)
        content[at] ^= 1
        assert not Signature(whole.key, whole.digest, whole.algorithm, bytes(content)).covers(facts)


@pytest.mark.parametrize(
    "text", [b"", b"x", b"\xff", b"-----BEGIN SSH SIGNATURE-----\n", b"\0" * 70000]
)
def test_what_is_no_signature_ends_in_words(out, keys, text):
    (out / "public" / "release.json.sig").write_bytes(text)
    found = verify(out, signer=public(keys["ed25519"]))
    assert found.signature == "failed"
    assert not verify(out).holds


def test_a_cut_signature_ends_in_words(out, keys):
    sign(out, key=keys["ecdsa-256"])
    whole = Signature.parse((out / "public" / "release.json.sig").read_bytes())
    for length in range(len(whole.content)):
        cut = Signature(whole.key, whole.digest, whole.algorithm, whole.content[:length])
        (out / "public" / "release.json.sig").write_bytes(armored(cut))
        assert not Signature.parse(armored(cut)).covers(b"x")
    cut = Signature(whole.key[:20], whole.digest, whole.algorithm, whole.content)
    (out / "public" / "release.json.sig").write_bytes(armored(cut))
    assert verify(out).signature == "failed"


def test_sha1_and_short_keys_do_not_count(out, keys, tmp_path):
    sign(out, key=keys["rsa"])
    whole = Signature.parse((out / "public" / "release.json.sig").read_bytes())
    facts = (out / "public" / "release.json").read_bytes()
    with pytest.raises(ReleaseError, match="kind of key"):
        Signature(whole.key, whole.digest, "ssh-rsa", whole.content).covers(facts)
    with pytest.raises(ReleaseError, match="kind of key"):
        Signature(whole.key, "sha1", whole.algorithm, whole.content).covers(facts)
    short = make_key(tmp_path / "short", "-t", "rsa", "-b", "1024")
    with pytest.raises(InputError, match="2048"):
        sign(out, key=short)
    file = out / "public" / "release.json"
    (out / "public" / "release.json.sig").unlink()
    assert keygen("-Y", "sign", "-n", "shoal-release", "-f", short, file)[0]
    assert verify(out).signature == "failed"


# -- lists of signers


def line_of(keys, name="ed25519"):
    return public(keys[name]).read_text().strip()


ALLOWED = {
    "a key": "{key}",
    "after a comment": "# stewards\n\n{key}\n",
    "with a name": "steward@example.org {key}",
    "with several names": "a@example.org,b@example.org {key}",
    "among others": "a@example.org {other}\nb@example.org {key}\n",
    "for this namespace": 'steward@example.org namespaces="git,shoal-release" {key}',
    "for a pattern of namespaces": 'steward@example.org namespaces="shoal-*" {key}',
    "from long ago": 'steward@example.org valid-after="20010101" {key}',
    "for long": 'steward@example.org valid-after="20010101Z",valid-before="29990101120000Z" {key}',
    "of authorized_keys": 'restrict,command="echo a b" {key}',
}
REFUSED = {
    "another key": "{other}",
    "a certificate authority": "*@example.org cert-authority {key}",
    "in capitals": "*@example.org CERT-AUTHORITY {key}",
    "another namespace": 'steward@example.org namespaces="git" {key}',
    "all but this namespace": 'steward@example.org namespaces="*,!shoal-release" {key}',
    "not yet": 'steward@example.org valid-after="29990101" {key}',
    "no longer": 'steward@example.org valid-before="20010101" {key}',
    "expired": 'expiry-time="200101010000" {key}',
    "behind a comment": "{other} {key}",
}


@pytest.mark.parametrize("what", ALLOWED)
def test_lists_that_allow_a_key(out, keys, tmp_path, what):
    sign(out, key=keys["ed25519"])
    allowed = tmp_path / "allowed"
    allowed.write_text(ALLOWED[what].format(key=line_of(keys), other=line_of(keys, "other")))
    assert verify(out, signer=allowed).signature == "passed"
    assert verify(out, signer=str(allowed)).signature == "passed"


@pytest.mark.parametrize("what", REFUSED)
def test_lists_that_do_not_allow_a_key(out, keys, tmp_path, what):
    sign(out, key=keys["ed25519"])
    allowed = tmp_path / "allowed"
    text = REFUSED[what].format(key=line_of(keys), other=line_of(keys, "other"))
    allowed.write_text(f"{line_of(keys, 'rsa')}\n{text}\n")
    assert verify(out, signer=allowed).signature == "failed"


def test_a_line_instead_of_a_file(out, keys):
    sign(out, key=keys["ed25519"])
    assert verify(out, signer=line_of(keys)).signature == "passed"
    assert verify(out, signer=line_of(keys, "other")).signature == "failed"


def test_a_signer_that_is_none_is_a_wrong_call(out, keys, tmp_path):
    empty = tmp_path / "empty"
    for text in ("", "# nobody\n", "ssh-ed25519 AAAA\n", "x" * 100, "ssh-rsa"):
        empty.write_text(text)
        with pytest.raises(InputError, match="no key"):
            verify(out, signer=empty)
    with pytest.raises(InputError, match="private key") as caught:
        verify(out, signer=keys["ed25519"])
    assert "BEGIN" not in str(caught.value)
    with pytest.raises(InputError, match="no file of a signer"):
        verify(out, signer=tmp_path / "nothing")
    empty.write_text(f'a@example.org valid-after="soon" {line_of(keys)}')
    with pytest.raises(InputError, match="time"):
        verify(out, signer=empty)


# -- signing


def test_signing_again_replaces(out, keys):
    first, second = sign(out, key=keys["ed25519"]), sign(out, key=keys["rsa"])
    assert verify(out).signed_by == second != first
    assert sorted(path.name for path in (out / "public").iterdir()) == [
        "data.parquet",
        "release.json",
        "release.json.sig",
        "report.html",
    ]


def test_a_signature_is_there_or_not(out, keys, monkeypatch):
    """A full disk, or ctrl-C, at the last moment: the earlier signature stays, and nothing else."""
    sign(out, key=keys["ed25519"])
    before = {path.name: path.read_bytes() for path in (out / "public").iterdir()}

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_signing.os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        sign(out, key=keys["other"])
    assert {path.name: path.read_bytes() for path in (out / "public").iterdir()} == before


def test_what_a_killed_run_left_is_cleared(out, keys):
    left = out / "public" / ".release.json.sig-0123456789abcdef"
    left.touch()
    assert not verify(out).holds
    sign(out, key=keys["ed25519"])
    assert verify(out).holds


@pytest.mark.skipif(os.name != "posix", reason="file modes of POSIX")
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_mode_of_a_signature_is_set(out, keys, umask):
    before = os.umask(umask)
    try:
        sign(out, key=keys["ed25519"])
    finally:
        os.umask(before)
    assert stat.S_IMODE((out / "public" / "release.json.sig").stat().st_mode) == 0o644


def test_a_release_that_does_not_verify_is_not_signed(out, keys):
    data = out / "public" / "data.parquet"
    data.write_bytes(data.read_bytes() + b"x")
    with pytest.raises(VerificationFailed):
        sign(out, key=keys["ed25519"])
    assert not (out / "public" / "release.json.sig").exists()


def test_a_bad_signature_can_be_replaced(out, keys):
    (out / "public" / "release.json.sig").write_text("nonsense")
    sign(out, key=keys["ed25519"])
    assert verify(out, signer=public(keys["ed25519"])).holds


def test_a_release_that_is_saved_again_is_not_signed(out, keys):
    sign(out, key=keys["ed25519"])
    protect(people(), plan()).save(out, force=True)
    assert verify(out).signature is None
    assert not (out / "public" / "release.json.sig").exists()


def test_every_file_of_the_public_half_is_covered(out, keys):
    """One signature on release.json is enough only if that file knows all others."""
    sign(out, key=keys["ed25519"])
    shutil.rmtree(out / "private")
    for path in (out / "public").iterdir():
        content = path.read_bytes()
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        assert not verify(out, signer=public(keys["ed25519"])).holds, path.name
        path.write_bytes(content)
    assert verify(out, signer=public(keys["ed25519"])).holds


# -- keys


def test_an_encrypted_key_needs_its_passphrase(out, keys):
    with pytest.raises(InputError, match="encrypted"):
        sign(out, key=keys["encrypted"])
    with pytest.raises(InputError, match="passphrase"):
        sign(out, key=keys["encrypted"], passphrase="wrong")
    sign(out, key=keys["encrypted"], passphrase=PASSPHRASE)
    assert verify(out, signer=public(keys["encrypted"])).holds


def test_a_passphrase_is_asked_for_only_if_needed(out, keys):
    asked = []

    def passphrase():
        asked.append(1)
        return PASSPHRASE

    sign(out, key=keys["ed25519"], passphrase=passphrase)
    assert asked == []
    sign(out, key=keys["encrypted"], passphrase=passphrase)
    assert asked == [1]


def test_keys_that_cannot_sign_are_refused_in_a_sentence(out, keys, tmp_path):
    bad = tmp_path / "bad"
    secret = keys["ed25519"].read_text()
    for text in ("", "nonsense", secret[:100], secret.replace("b3Blb", "b3Clb"), "\0" * 100):
        bad.write_text(text)
        with pytest.raises(InputError, match="cannot be read") as caught:
            sign(out, key=bad)
        assert secret.splitlines()[1][:20] not in str(caught.value)
        assert caught.value.__cause__ is None
    with pytest.raises(InputError, match="public key"):
        sign(out, key=public(keys["ed25519"]))
    with pytest.raises(InputError, match="no key file"):
        sign(out, key=tmp_path / "nothing")
    with pytest.raises(InputError, match="no key file"):
        sign(out, key=tmp_path)
    assert not (out / "public" / "release.json.sig").exists()


def test_there_must_be_a_release(tmp_path, keys):
    with pytest.raises(ReleaseError, match="no release folder"):
        sign(tmp_path / "nothing", key=keys["ed25519"])
