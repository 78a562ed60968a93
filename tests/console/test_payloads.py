"""Tests binary and encrypted payloads in a browser."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

from duetime.environment_variables import Variable
from duetime_common.payload_codecs import ENCRYPTED, ENCRYPTED_TEXT
from functions.console.handler import content_security_policy
from tests.scenarios.scenario import PLAIN

if TYPE_CHECKING:
    import pytest
    from playwright.sync_api import Page, Route

    from tests.console.conftest import Console
    from tests.console.world import World

BUCKET = "https://contents.s3.example/signed/"
CODEC = "https://codec.example.org/duetime"
CIPHER = base64.b64encode(b"nobody reads this").decode()
HTML = "<script>document.title='hit'</script>"


def created(world: World, payload: object) -> str:
    """Create a task with a payload and return its id."""
    return world.create(type=PLAIN, payload=payload, delay_seconds=3600)


def test_a_file_becomes_the_payload_and_can_be_downloaded(console: Console, tmp_path: Path) -> None:
    """The form accepts a file, and the task's page returns the file's bytes with their size and type."""
    file = tmp_path / "page.html"
    file.write_text(HTML, encoding="utf-8")
    page = console.open("/tasks")
    page.get_by_role("button", name="New task").click()
    page.get_by_label("Type").fill(PLAIN)
    page.get_by_label("File").set_input_files(file)
    page.get_by_label("Due in seconds").fill("3600")
    page.get_by_role("button", name="Create", exact=True).click()
    shown = page.get_by_label("Payload", exact=True)
    expect(shown).to_contain_text(f"{len(HTML)} bytes of text/html")
    with page.expect_download() as download:
        shown.get_by_role("button", name="Download").click()
    assert Path(download.value.path()).read_text(encoding="utf-8") == HTML


def upload_from(page: Page, world: World, answered: list[int]) -> None:
    """Respond to the page's signed requests as S3 does, with CORS, and record the statuses."""

    def answer(route: Route) -> None:
        headers = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "content-type, if-none-match"}
        request = route.request
        if request.method == "OPTIONS":
            route.fulfill(status=204, headers={**headers, "Access-Control-Allow-Methods": "PUT"})
            return
        body = request.post_data_buffer or b""
        # The browser adds this header after the request was intercepted.
        sent = {**request.all_headers(), "content-length": str(len(body))}
        status, text = world.do(lambda live: live.s3.send_signed(request.method, request.url, sent, body))
        answered.append(status)
        route.fulfill(status=status, headers=headers, body=text)

    page.route(f"{BUCKET}*", answer)


def test_a_file_above_a_mebibyte_is_uploaded_and_becomes_the_payload(
    console: Console, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is uploaded once, even if the task's first creation is refused; a file larger than 5 MB is refused."""
    monkeypatch.setenv(Variable.UPLOAD_URL, BUCKET)
    console.expected = ("status of 412", "status of 422")
    file, huge = tmp_path / "video.mp4", tmp_path / "huge.bin"
    file.write_bytes(bytes(range(256)) * 12_000)
    huge.write_bytes(bytes(5_000_001))
    answered: list[int] = []
    page = console.open("/tasks")
    upload_from(page, world, answered)
    page.get_by_role("button", name="New task").click()
    page.get_by_label("Type").fill(PLAIN)
    page.get_by_label("File").set_input_files(huge)
    expect(page.get_by_role("alert")).to_contain_text("The file has 5,000,001 bytes; a payload has at most 5,000,000")
    page.get_by_label("File").set_input_files(file)
    expect(page.get_by_label("Payload")).to_contain_text("video.mp4: 3,072,000 bytes of video/mp4")
    console.check_accessibility(page)
    page.get_by_label("Due in seconds").fill("9999999999")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_text("delay_seconds", exact=True)).to_be_visible()
    page.get_by_label("Due in seconds").fill("3600")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_label("Payload", exact=True)).to_contain_text("3,072,000 bytes of video/mp4")
    assert answered == [200, 412]
    (stored,) = [
        body for (_, key), body in world.do(lambda live: dict(live.s3.objects)).items() if "uploads" not in key
    ]
    assert stored == file.read_bytes()
    page.get_by_role("button", name="As a command").click()
    expect(page.get_by_label("The latest request")).to_contain_text("--payload-file video.mp4 --content-type video/mp4")


def test_an_uploaded_payload_can_be_downloaded_after_its_link_has_expired(
    console: Console, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A click on the download requests a new link, because the page's link may have expired."""
    monkeypatch.setenv(Variable.UPLOAD_URL, BUCKET)
    console.expected = ("ERR_EMPTY_RESPONSE", "ERR_CONNECTION")
    task_id, content = uploaded(world, b"\x00\x01" * 600_000)
    page = console.open(f"/tasks/{task_id}")
    shown = page.get_by_label("Payload", exact=True)
    expect(shown).to_contain_text("1,200,000 bytes of video/mp4")
    read = world.ask("GET", f"/v1/tasks/{task_id}")["payload"]["$binary"]["url"]
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        status, body = world.do(lambda live: live.s3.send_signed("GET", route.request.url, {}, b""))
        route.fulfill(status=status, headers={"Content-Disposition": "attachment"}, body=body)

    page.route(f"{BUCKET}*", answer)
    with page.expect_download() as download:
        shown.get_by_role("button", name="Download").click()
    assert Path(download.value.path()).read_bytes() == content
    # This link was signed after the test had read the earlier link.
    assert int(asked[0].removeprefix(BUCKET)) > int(read.removeprefix(BUCKET))
    console.check_accessibility(page)
    expect(page).to_have_url(re.compile(task_id))
    world.down = True
    shown.get_by_role("button", name="Download").click()
    expect(shown.get_by_role("alert")).to_have_text("The payload could not be downloaded: The API cannot be reached.")


def uploaded(world: World, content: bytes) -> tuple[str, bytes]:
    """Create a task whose payload was uploaded, and return its id and the payload."""
    wanted = {"id": "upload-1", "size": len(content), "content_type": "video/mp4"}
    signed = world.ask("POST", "/v1/uploads", wanted)
    status, _ = world.do(lambda live: live.s3.send_signed("PUT", signed["url"], signed["headers"], content))
    assert status == 200
    payload = {"$upload": signed["id"]}
    return world.create(type=PLAIN, payload=payload, delay_seconds=3600), content


def test_a_task_with_an_uploaded_payload_runs_again_with_the_same_bytes(
    console: Console, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To copy a task, its bytes are read through a new link and uploaded again; the link is never sent as a payload."""
    monkeypatch.setenv(Variable.UPLOAD_URL, BUCKET)
    file = tmp_path / "video.mp4"
    file.write_bytes(bytes(range(256)) * 12_000)
    answered: list[int] = []
    page = console.open("/tasks")
    upload_from(page, world, answered)
    page.get_by_role("button", name="New task").click()
    page.get_by_label("Type").fill(PLAIN)
    page.get_by_label("File").set_input_files(file)
    page.get_by_label("Due in seconds").fill("3600")
    page.get_by_role("button", name="Create", exact=True).click()
    dialog, shown = page.get_by_role("dialog"), page.get_by_label("Payload", exact=True)
    expect(dialog).to_have_count(0)
    expect(shown).to_contain_text("3,072,000 bytes of video/mp4")
    first = page.url
    page.get_by_role("button", name="Run again…").click()
    expect(dialog.get_by_label("Payload")).to_contain_text("3,072,000 bytes of video/mp4")
    expect(dialog).to_contain_text("The bytes are uploaded again when you create the task")
    expect(dialog).not_to_contain_text("$binary")
    console.check_accessibility(page)
    page.get_by_label("Due in seconds").fill("7200")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(shown).to_contain_text("3,072,000 bytes of video/mp4")
    assert page.url != first
    # The requests are the first upload, the download and the second upload.
    assert answered == [200, 200, 200]
    kept = {key: body for (_, key), body in world.do(lambda live: dict(live.s3.objects)).items()}
    stored = [body for key, body in kept.items() if "uploads" not in key]
    assert stored == [file.read_bytes()] * 2


def test_a_task_with_an_unreadable_payload_is_rerun_with_another_payload(
    console: Console, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a payload cannot be read, the form says so, and no task is created until another payload is chosen."""
    monkeypatch.setenv(Variable.UPLOAD_URL, BUCKET)
    console.expected = ("status of 404",)
    file = tmp_path / "large.bin"
    file.write_bytes(bytes(2_000_000))
    page = console.open("/tasks")
    upload_from(page, world, [])
    page.get_by_role("button", name="New task").click()
    page.get_by_label("Type").fill(PLAIN)
    page.get_by_label("File").set_input_files(file)
    page.get_by_label("Due in seconds").fill("3600")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    world.do(lambda live: live.s3.objects.clear())
    page.get_by_role("button", name="Run again…").click()
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("The payload of the task was not read")
    assert world.requests.count(("POST", "/v1/tasks")) == 1
    page.get_by_role("button", name="Choose another").click()
    page.get_by_role("dialog").get_by_role("textbox", name="Payload").fill('"small"')
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_label("Payload", exact=True)).to_contain_text("small")


def test_a_rejected_upload_creates_no_task(
    console: Console, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an upload is refused, the form says so, no task is created, and the user can choose another payload."""
    monkeypatch.setenv(Variable.UPLOAD_URL, BUCKET)
    console.expected = ("status of 403", "ERR_FAILED")
    file = tmp_path / "large.bin"
    file.write_bytes(bytes(2_000_000))
    page = console.open("/tasks")
    page.route(f"{BUCKET}*", lambda route: route.fulfill(status=403, headers={"Access-Control-Allow-Origin": "*"}))
    page.get_by_role("button", name="New task").click()
    page.get_by_label("Type").fill(PLAIN)
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("The file was not uploaded")
    assert ("POST", "/v1/tasks") not in world.requests
    page.get_by_role("button", name="Choose another").click()
    expect(page.get_by_label("Payload")).to_have_value("null")


def test_the_page_can_upload_only_to_the_bucket_of_the_deployment() -> None:
    """The page's policy includes the bucket's path, because other buckets have the same origin."""
    bucket = "https://s3.eu-west-1.amazonaws.com/contents/"
    assert f" connect-src 'self' wss://live.example.org {bucket};" in content_security_policy(
        "wss://live.example.org/x", (), bucket
    )


def decoding(page: Page, value: object) -> list[Any]:
    """Decrypt every string to the same value, and return the requests so far."""
    asked: list[Any] = []

    def decode(route: Route) -> None:
        headers = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*"}
        if route.request.method == "OPTIONS":
            route.fulfill(status=204, headers=headers)
            return
        asked.append(route.request.post_data_json)
        plain = base64.b64encode(json.dumps(value).encode()).decode()
        route.fulfill(status=200, headers=headers, json={"payloads": [{"metadata": {}, "data": plain}]})

    page.route(f"{CODEC}/decode", decode)
    return asked


def failing(page: Page, task: str) -> None:
    """Make the API return a task as failed, with an encrypted message and traceback."""
    text = f"{ENCRYPTED_TEXT}{CIPHER}"
    error = {"type": "Refused", "message": text}

    def fail(route: Route) -> None:
        answer = route.fetch()
        document = answer.json()
        if route.request.url.endswith("/attempts"):
            attempt = {"attempt": 1, "fence": 1, "worker": "w", "function_version": None, "planned_at": None}
            attempt |= {"started_at": None, "lateness_ms": 0, "duration_ms": 1, "cost_dollars": 0, "outcome": "failed"}
            route.fulfill(response=answer, json={"attempts": [{**attempt, "error": {**error, "traceback": text}}]})
        elif "tasks" in document:
            tasks = [{**each, "state": "failed", "error": error} for each in document["tasks"]]
            route.fulfill(response=answer, json={**document, "tasks": tasks})
        else:
            route.fulfill(response=answer, json={**document, "state": "failed", "error": error})

    page.route(re.compile(rf"/v1/tasks(/{task}(/attempts)?)?(\?|$)"), fail)


def test_messages_and_tracebacks_are_decrypted_on_request(
    console: Console, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error's type is shown at once, and its text is decrypted on request and displayed as plain text."""
    monkeypatch.setenv(Variable.CODEC_ENDPOINT, CODEC)
    task = created(world, {})
    page = console.open("/tasks")
    failing(page, task)
    asked = decoding(page, HTML)
    page.goto(f"{page.url.partition('#')[0]}#/tasks/{task}")
    page.reload()
    error = page.locator(".card.failed p")
    expect(error).to_contain_text("Refused [encrypted]")
    assert asked == []
    error.get_by_role("button", name="Decrypt").click()
    expect(error).to_have_text(f"Refused {HTML}")
    assert asked == [{"payloads": [{"metadata": {}, "data": CIPHER}]}]
    page.get_by_text("Traceback", exact=True).click()
    traceback = page.get_by_label("Traceback")
    traceback.get_by_role("button", name="Decrypt").click()
    expect(traceback).to_have_text(HTML)


def test_without_a_codec_endpoint_texts_stay_encrypted(console: Console, world: World) -> None:
    """A list and a page show that error texts are encrypted, and there is no button to decrypt them."""
    task = created(world, {})
    page = console.open("/tasks")
    failing(page, task)
    page.reload()
    expect(page.get_by_text("Refused: [encrypted]").first).to_be_visible()
    page.goto(f"{page.url.partition('#')[0]}#/tasks/{task}")
    expect(page.locator(".card.failed p")).to_have_text("Refused [encrypted]")
    expect(page.get_by_role("button", name="Decrypt")).to_have_count(0)


def test_an_encrypted_payload_is_decrypted_on_request(
    console: Console, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On request, the browser sends an encrypted payload to the codec endpoint and shows the decrypted JSON."""
    monkeypatch.setenv(Variable.CODEC_ENDPOINT, CODEC)
    task = created(world, {"$binary": {"base64": CIPHER, "content_type": ENCRYPTED}})
    page = console.open(f"/tasks/{task}")
    asked = decoding(page, {"card": HTML})
    shown = page.get_by_label("Payload", exact=True)
    expect(shown).to_contain_text("Encrypted, 17 bytes")
    assert asked == []
    page.get_by_role("button", name="Decrypt").click()
    expect(shown).to_contain_text(HTML)
    assert asked == [{"payloads": [{"metadata": {}, "data": CIPHER}]}]


def test_without_a_codec_endpoint_a_payload_stays_encrypted(console: Console, world: World) -> None:
    """Without a codec endpoint there is no button to decrypt a payload."""
    page = console.open(f"/tasks/{created(world, {'$binary': {'base64': CIPHER, 'content_type': ENCRYPTED}})}")
    expect(page.get_by_label("Payload", exact=True)).to_contain_text("Encrypted")
    expect(page.get_by_role("button", name="Decrypt")).to_have_count(0)


def test_the_page_can_call_the_codec_endpoint() -> None:
    """The policy allows requests to the codec endpoint's origin and to no other foreign origin."""
    policy = content_security_policy("wss://live.example.org/x", (CODEC,))
    assert " connect-src 'self' wss://live.example.org https://codec.example.org;" in policy


def test_a_reader_sees_why_values_are_missing(console: Console, world: World) -> None:
    """The reason for redacted values is shown next to a payload with markers, but not next to other payloads."""
    task = created(world, {"card": "4111"})
    shows = {"card": {"$redacted": True}}
    note = "Your role can only read"
    page = console.open(f"/tasks/{task}")
    expect(page.get_by_label("Payload", exact=True)).to_contain_text("4111")
    expect(page.get_by_text(note)).to_have_count(0)

    def redact(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "payload": shows})

    page.route(f"**/v1/tasks/{task}", redact)
    page.reload()
    expect(page.get_by_text(note)).to_be_visible()
