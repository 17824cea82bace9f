"""Only the browser that has entered can read or start anything: each rule and its violations."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from shoal.app.demo import PEOPLE
from shoal.app.studio._app import make_app
from shoal.errors import InputError

from .conftest import ORIGIN, PORT, ROLES, TOKEN
from .parts.server import Server

SCRIPT = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A studio in a process, with somebody inside."""
    folder = tmp_path_factory.mktemp("secure")
    found = Server(Path(shutil.copy(PEOPLE, folder / "people.csv"))).enter()
    yield found
    found.close()


@pytest.fixture
def outside(open_studio):
    """A client that has not entered."""
    from starlette.testclient import TestClient

    studio = open_studio().studio
    return TestClient(make_app(studio, port=PORT, token=TOKEN), base_url=ORIGIN)


# -- who asks, and under which name


@pytest.mark.parametrize(
    "hosts",
    [
        ["evil.example"],
        ["localhost:{port}"],
        ["127.0.0.1"],
        ["127.0.0.1:{port}."],
        ["127.0.0.1.:{port}"],
        ["127.0.0.1:0{port}"],
        ["127.0.0.1:80"],
        ["user@127.0.0.1:{port}"],
        ["127.0.0.1:{port}@evil.example"],
        ["127.0.0.1:{port}, evil.example"],
        ["[::ffff:127.0.0.1]:{port}"],
        ["2130706433:{port}"],
        [],
        ["127.0.0.1:{port}", "evil.example"],
        ["127.0.0.1:{port}", "127.0.0.1:{port}"],
    ],
)
def test_another_host_is_not_answered(server, hosts):
    """DNS that points at this machine brings its own name along."""
    lines = [f"host: {host.format(port=server.port)}" for host in hosts]
    assert server.code("GET /data HTTP/1.1", *lines, f"cookie: {server.cookie}") in (400, 421)


def test_the_own_host_is_answered(server):
    host, cookie = f"host: 127.0.0.1:{server.port}", f"cookie: {server.cookie}"
    assert server.code("GET /static/icon.svg HTTP/1.1", host, cookie) == 200


@pytest.mark.parametrize(
    "target", ["http://evil.example/data", "http://127.0.0.1:{port}/data", "*"]
)
def test_the_studio_is_no_proxy(server, target):
    first = f"GET {target.format(port=server.port)} HTTP/1.1"
    host, cookie = f"host: 127.0.0.1:{server.port}", f"cookie: {server.cookie}"
    assert server.code(first, host, cookie) in (400, 421)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        f"http://127.0.0.1:{PORT + 1}",
        f"http://localhost:{PORT}",
        f"https://127.0.0.1:{PORT}",
        f"http://127.0.0.1:{PORT}.evil.example",
        f"http://127.0.0.1:{PORT}/",
        f"{ORIGIN}, {ORIGIN}",
        "",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_another_origin_neither_reads_nor_changes(browser, origin, method):
    before = browser.studio.project.version
    answer = browser.client.request(
        method, "/notes", data={"notes": "x"} if method == "POST" else None,
        headers={"origin": origin},
    )  # fmt: skip
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    assert (browser.studio.project.notes, browser.studio.project.version) == ("", before)


def test_a_change_names_its_origin(browser):
    assert browser.client.post("/notes", data={"notes": "x"}).status_code == 403
    own = {"origin": ORIGIN, "sec-fetch-site": "cross-site"}
    assert browser.client.post("/notes", data={"notes": "x"}, headers=own).status_code == 403
    assert browser.studio.project.notes == ""
    browser.post("/notes", notes="x")
    assert browser.studio.project.notes == "x"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "Same-Origin"])
def test_another_site_does_not_read(browser, site):
    """Another port of this machine is the same site but does not belong to the studio."""
    assert browser.client.get("/data", headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_the_own_pages_and_an_address_that_is_typed_read(browser, site):
    assert browser.client.get("/data", headers={"sec-fetch-site": site}).status_code == 200


@pytest.mark.parametrize("method", ["TRACE", "OPTIONS", "PUT", "DELETE", "CONNECT", "PATCH"])
def test_other_methods_are_refused(server, method):
    host, cookie = f"host: 127.0.0.1:{server.port}", f"cookie: {server.cookie}"
    assert server.code(f"{method} /data HTTP/1.1", host, cookie) in (400, 403, 405)
    own = f"origin: {server.origin}"
    assert server.code(f"{method} /data HTTP/1.1", host, cookie, own) in (400, 405)


def test_no_socket_is_opened(server):
    came = server.raw(
        f"GET /events HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\nupgrade: websocket\r\n"
        "connection: upgrade\r\nsec-websocket-version: 13\r\n"
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\norigin: http://evil.example\r\n"
        f"cookie: {server.cookie}\r\n\r\n",
        rest=1.0,
    )
    assert came.startswith(b"HTTP/1.1 403 ")


# -- the token and the cookie


PAGES = ["/", "/data", "/events", "/history", "/static/studio.js", "/static/studio.css", "/nowhere"]


@pytest.mark.parametrize("path", PAGES)
def test_without_the_token_there_is_nothing(outside, path):
    answer = outside.get(path)
    assert (answer.status_code, answer.cookies) == (403, {})
    assert "people" not in answer.text


@pytest.mark.parametrize(
    "wrong", ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é%00", "../.."]
)
def test_a_wrong_token_opens_nothing_and_spends_nothing(outside, wrong):
    assert outside.get(f"/enter/{wrong}").status_code in (403, 404)
    assert outside.get("/data").status_code == 403
    assert outside.get(f"/enter/{TOKEN}").status_code == 200


def test_a_token_is_spent_once(browser, outside):
    assert outside.get(f"/enter/{TOKEN}").status_code == 200
    outside.cookies.clear()
    again = outside.get(f"/enter/{TOKEN}")
    assert (again.status_code, "set-cookie" in again.headers) == (403, False)
    assert outside.get("/data").status_code == 403


def test_whoever_is_inside_may_open_the_address_again(browser):
    again = browser.client.get(f"/enter/{TOKEN}")
    assert (again.status_code, "set-cookie" in again.headers) == (200, False)


def test_a_token_is_not_spent_by_looking(outside):
    """A terminal or a chat may check whether an address exists."""
    assert outside.head(f"/enter/{TOKEN}").status_code == 403
    post = outside.post(f"/enter/{TOKEN}", headers={"origin": ORIGIN})
    assert post.status_code == 403
    assert outside.get(f"/enter/{TOKEN}").status_code == 200


def test_the_cookie_is_for_this_port_and_for_no_script(outside):
    given = outside.get(f"/enter/{TOKEN}").headers["set-cookie"]
    assert given.startswith(f"shoal-{PORT}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(given.split("; "))
    assert "Domain" not in given
    assert TOKEN not in given


def test_a_cookie_of_another_port_or_studio_opens_nothing(open_studio, tmp_path):
    one, other = open_studio(folder="one"), open_studio(folder="other")
    name, value = next(iter(one.client.cookies.items()))
    other.client.cookies.clear()
    for cookie in (f"{name}={value}", f"shoal-{PORT + 1}={value}", f"{name}=", name):
        answer = other.client.get("/data", headers={"cookie": cookie})
        assert answer.status_code == 403, cookie


# -- what a page may do


@pytest.mark.parametrize(
    "path", ["/data", "/data?show=values", "/history", "/static/studio.css", "/nowhere"]
)
def test_every_answer_is_kept_by_nobody_framed_by_nobody_and_runs_nothing(browser, path):
    headers = browser.client.get(path).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    rules = headers["content-security-policy"]
    policy = dict(rule.strip().split(" ", 1) for rule in rules.split(";"))
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in rules
    assert headers["referrer-policy"] == "same-origin"  # else a form would have no origin
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_a_refusal_has_the_headers_too(outside):
    answer = outside.get("/data")
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/data", "/roles", "/risk", "/plan", "/history"])
def test_no_page_has_a_script_or_a_style_of_its_own(browser, path):
    """The policy would stop it, and a page that needs it would be broken."""
    text = browser.get(path).text
    assert re.findall(r"<script(?![^>]* src=\"/static/)", text) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=|javascript:|https?://(?!www\.w3)", text) == []


def test_a_script_in_a_name_or_a_cell_is_text(open_studio, tmp_path):
    source = tmp_path / "data" / f"{SCRIPT.replace('/', '')}.csv"
    source.parent.mkdir()
    quoted = '"' + SCRIPT.replace('"', '""') + '"'
    source.write_text(f"{quoted},age\n" + f"{quoted},3\n{quoted},4\n" * 20)
    browser = open_studio(source)
    browser.post("/data/whose", whose="several", unit=SCRIPT)
    for path in ("/data", "/data?show=values", "/history", "/roles"):
        text = browser.get(path).text
        assert "alert(" not in text or "&lt;script&gt;alert(" in text
        assert "<script>alert" not in text
        assert '"x")</script>' not in text


def test_an_unknown_page_does_not_repeat_what_was_asked_for(browser):
    answer = browser.client.get(f"/{SCRIPT}")
    assert answer.status_code == 404
    assert "<script>alert" not in answer.text


# -- files


@pytest.fixture
def roots(open_studio, people, tmp_path):
    (tmp_path / "secret.csv").write_text("name,age\nada,36\n")
    (people.parent / "link.csv").symlink_to(tmp_path / "secret.csv")
    (people.parent / "away").symlink_to(tmp_path)
    (people.parent / "folder.csv").mkdir()
    os.mkfifo(people.parent / "pipe.csv")
    return open_studio(people)


@pytest.mark.parametrize(
    "path",
    [
        "{data}/../secret.csv",
        "../secret.csv",
        "{tmp}/secret.csv",
        "{data}/link.csv",
        "{data}/away/secret.csv",
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/cwd/secret.csv",
        "/dev/zero",
        "{data}/people.csv\0.csv",
        "\0",
        "//etc/passwd",
    ],
)
def test_a_path_outside_is_refused_and_not_looked_at(roots, people, tmp_path, path):
    """The answer is the same whether a file exists or not."""
    before = roots.studio.project.version
    given = path.format(data=people.parent, tmp=tmp_path)
    answer = roots.post("/data/choose", 422, path=given)
    assert "There is no file" not in answer.text
    assert roots.studio.project.version == before


@pytest.mark.parametrize("name", ["pipe.csv", "folder.csv", "nothing.csv", ".", "~/x", "x" * 999])
def test_what_is_no_file_is_not_read(roots, people, name):
    roots.post("/data/choose", 422, path=f"{people.parent}/{name}")


def test_a_path_that_an_editor_wrote_is_held_to_the_same(roots, people, tmp_path):
    folder = roots.studio.project.folder
    for path in (tmp_path / "secret.csv", people.parent / "pipe.csv", "/dev/zero", "/etc/passwd"):
        (folder / "studio.toml").write_text(f'[source]\npath = "{path}"\n')
        with pytest.raises(InputError, match=r"below|not a file"):
            roots.studio.dataset.loaded(1.0)
        assert roots.client.get("/data").status_code in (200, 422)


@pytest.mark.parametrize(
    "path",
    ["/static/../_app.py", "/static/..%2f_app.py", "/static/%2e%2e/_app.py", "/static//etc/passwd"],
)
def test_no_other_file_is_served(server, path):
    host, cookie = f"host: 127.0.0.1:{server.port}", f"cookie: {server.cookie}"
    assert server.code(f"GET {path} HTTP/1.1", host, cookie) in (404, 405)


@pytest.mark.parametrize(
    "id", ["..", "%2e%2e", ".", "%00", "x", "..%2f..", "20260101-000000-x-00000"]
)
@pytest.mark.parametrize("what", ["cancel", "go-on", "remove"])
def test_no_job_lies_elsewhere(server, id, what):
    project = server.place.parent / "people-studio"
    lines = [
        f"host: 127.0.0.1:{server.port}",
        f"cookie: {server.cookie}",
        f"origin: {server.origin}",
        "content-length: 0",
    ]
    assert server.code(f"POST /jobs/{id}/{what} HTTP/1.1", *lines) in (404, 422)
    assert (project / "plan.toml").exists()


# -- where an action leads


@pytest.mark.parametrize(
    "back",
    [
        "//evil.example",
        "///evil.example",
        "http://evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "data",
        "/data\r\nset-cookie: a=b",
        "/data?\r\nset-cookie: a=b",
        "/nowhere",
        "/static/studio.js",
        "",
    ],
)
def test_an_action_leads_to_a_screen_and_nowhere_else(browser, back):
    answer = browser.post("/notes", 422, notes="x", back=back)
    assert "location" not in answer.headers


@pytest.mark.parametrize(
    "back", ["/", "/data", "/data?show=values", "/history", "/roles/a%20b?c=d"]
)
def test_an_action_leads_back(browser, back):
    answer = browser.client.post(
        "/notes", data={"notes": "x", "back": back}, headers={"origin": ORIGIN},
        follow_redirects=False,
    )  # fmt: skip
    assert (answer.status_code, answer.headers["location"]) == (303, back)


# -- too much


def test_a_huge_form_is_refused(server):
    answer = server.post("/notes", notes="x" * 3_000_000)
    assert (answer.code, "too large" in answer.text) == (422, True)
    assert "xxxx" not in answer.text
    assert server.get("/history")


def test_a_huge_form_of_somebody_else_is_not_even_read(server):
    lines = [f"host: 127.0.0.1:{server.port}", "content-length: 9000000000"]
    assert server.code("POST /notes HTTP/1.1", *lines, body="x" * 100_000) == 403


def test_many_fields_are_refused(browser):
    fields = "&".join(f"f{i}=" for i in range(30_000))
    form = {"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"}
    answer = browser.client.post("/notes", content=fields, headers=form)
    assert (answer.status_code, "too many fields" in answer.text) == (422, True)


@pytest.mark.parametrize("number", ["", "x", "1e3", "9" * 5000, "²", "1_0", " 1", "0x1", "-1"])
def test_a_number_that_is_none_is_refused(browser, number):
    browser.post("/history/go", 422, version=number)


def test_a_form_that_never_ends_holds_up_nobody(server):
    lines = [
        "POST /notes HTTP/1.1",
        f"host: 127.0.0.1:{server.port}",
        f"cookie: {server.cookie}",
        f"origin: {server.origin}",
        "content-length: 100",
        "",
        "notes=",
    ]
    slow = threading.Thread(target=server.raw, args=["\r\n".join(lines)], kwargs={"rest": 1.0})
    slow.start()
    assert server.get("/history")
    slow.join()


def test_a_form_that_never_ends_is_given_up(browser, monkeypatch):
    monkeypatch.setattr("shoal.app.studio._pages._SLOWEST_FORM", 0.05)

    cookie = "; ".join(f"{name}={value}" for name, value in browser.client.cookies.items())
    headers = {"host": f"127.0.0.1:{PORT}", "origin": ORIGIN, "cookie": cookie}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/notes",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    sent = []

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    asyncio.run(browser.client.app(scope, receive, send))
    assert sent[0]["status"] == 422
    assert b"too long" in sent[1]["body"]


@pytest.mark.parametrize("body", ["%ff%fe=%00", "=&&=&", "version", "\0", "notes=%"])
def test_a_form_that_is_none_is_answered(browser, body):
    form = {"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"}
    for path in (
        "/notes",
        "/history/go",
        "/plan/text",
        "/data/choose",
        "/data/read",
        "/data/whose",
    ):
        answer = browser.client.post(path, content=body.encode(), headers=form)
        assert answer.status_code in (200, 422), path


# -- what is said


def test_nothing_is_logged_and_no_token_is_repeated(tmp_path):
    """Pages, refusals and failures log nothing; an unexpected failure does not quote its cause."""
    source = shutil.copy(PEOPLE, tmp_path / "people.csv")
    program = (
        "import shoal.app.studio.screens.data as data\n"
        "def fail(*given): raise RuntimeError('ada.lovelace@example.org')\n"
        "data._is_data = fail\n"
        "from shoal.app.cli import main; main()"
    )
    server = Server(source, program=program).enter()
    try:
        answer = server.ask("GET", "/data")
        assert answer.code == 500
        assert "RuntimeError" in answer.text
        assert "ada" not in answer.text
        assert answer.headers["cache-control"] == "no-store"
        server.ask("GET", "/nowhere")
        server.post("/history/go", version="ada.lovelace@example.org")
        server.raw("nonsense\r\n\r\n")
        code, said = server.stop()
    finally:
        server.close()
    assert code == 130
    assert said.split("\n") == [
        "shoal: stopped; nothing is left half written.",
        "",
    ]


def test_the_address_has_the_only_secret_and_nothing_else_repeats_it(server):
    folder = server.place.parent / "people-studio"
    for path in folder.rglob("*"):
        if path.is_file():
            assert server.token not in path.read_text(encoding="utf-8", errors="replace"), path
    assert server.token not in server.get("/data")
    assert server.token not in str(server.process.args)


def test_what_a_library_says_about_a_broken_file_is_not_repeated(open_studio, tmp_path):
    source = tmp_path / "data" / "people.parquet"
    source.parent.mkdir()
    source.write_bytes(b"PAR1 ada.lovelace@example.org PAR1")
    browser = open_studio()
    browser.studio.dataset.roots += (source.parent,)
    text = browser.post("/data/choose", path=str(source)).text
    assert "people.parquet" in text
    assert "lovelace" not in text


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize(
    "part",
    [
        '[require]\nk_map = {{ k = 2, population = "{0}" }}\n',
        '[[steps]]\nmethod = "generalize"\nk = 2\n[steps.hierarchies]\nage = "{0}"\n',
        '[[steps]]\nmethod = "generalize"\n'
        'models = [{{ k_map = {{ k = 2, population = "{0}" }} }}]\n',
    ],
)
def test_a_plan_reads_no_file_elsewhere(browser, tmp_path, part, link):
    """Neither a plan that is typed nor one that was put into the folder."""
    secret = tmp_path / "secret.csv"
    secret.write_text("age\n1\n", encoding="utf-8")
    named = secret
    if link:
        named = browser.studio.project.folder / "inside.csv"
        named.symlink_to(secret)
    text = ROLES + part.format(named)
    version = browser.studio.project.version.number
    answer = browser.post("/plan/text", code=422, text=text, version=version, back="/plan")
    assert "reads files below" in answer.text
    (browser.studio.project.folder / "plan.toml").write_text(text, encoding="utf-8")
    for path in ("/plan", "/search", "/hierarchies", "/release"):
        page = browser.client.get(path)
        assert "reads files below" in page.text
    with pytest.raises(InputError, match="reads files below"):
        browser.studio.start("compare", "Compare")
