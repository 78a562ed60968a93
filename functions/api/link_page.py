"""Creates the page that people see when they open a link. The page works without scripts, and loads no other files.

All text from users, such as the task's name, is escaped.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_ACTION_REASON_LENGTH
from duetime.domain.links import LinkAction
from duetime.domain.tasks.states import TERMINAL, State

from .responses import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.contract.links import LinkedTask, OpenedLink

_BUTTONS = {
    LinkAction.APPROVE: ("Approve", "yes"),
    LinkAction.REJECT: ("Reject", "no"),
    LinkAction.COMPLETE: ("Report as done", "yes"),
    LinkAction.FAIL: ("Report as failed", "no"),
}
_DONE = {
    LinkAction.APPROVE: "Approved",
    LinkAction.REJECT: "Rejected",
    LinkAction.COMPLETE: "Reported as done",
    LinkAction.FAIL: "Reported as failed",
}
_COLORS = {State.SUCCEEDED: "green", State.FAILED: "red", State.RUNNING: "blue", State.WAITING: "amber"}
_REFRESH_SECONDS = 10
_STYLE = """
:root { color-scheme: light dark; --page: light-dark(#f7f7f8, #0f1115); --card: light-dark(#fff, #16191f);
  --line: light-dark(#e2e4e8, #272c36); --edge: light-dark(#8b929e, #6b7484); --text: light-dark(#191c22, #e6e8ec);
  --muted: light-dark(#5b6370, #9aa3b2); --focus: light-dark(#4f46e5, #a5b4fc); --green: light-dark(#15703a, #5fd08b);
  --red: light-dark(#b91c1c, #ff8f8f); --blue: light-dark(#1d4ed8, #7cb0ff); --amber: light-dark(#92500a, #f3b95c);
  --gray: light-dark(#4b5563, #a8b1bf); }
*, *::before { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 24px 16px; background: var(--page);
  color: var(--text); font: 16px/1.5 ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans",
  "Liberation Sans", Arial, sans-serif; -webkit-text-size-adjust: 100%; }
main { width: 100%; max-width: 480px; background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 24px; }
h1 { margin: 0 0 4px; font-size: 22px; line-height: 1.3; font-weight: 650; letter-spacing: -0.01em;
  overflow-wrap: anywhere; }
p { margin: 8px 0 0; overflow-wrap: anywhere; }
.muted { color: var(--muted); font-size: 14px; }
dl + .muted, form + .muted { margin-top: 16px; }
dl { margin: 20px 0 0; border-top: 1px solid var(--line); }
dl div { display: flex; gap: 16px; justify-content: space-between; padding: 10px 0;
  border-bottom: 1px solid var(--line); }
dt { color: var(--muted); flex: none; }
dd { margin: 0; text-align: right; overflow-wrap: anywhere; min-width: 0; }
.green { --state: var(--green); } .red { --state: var(--red); } .blue { --state: var(--blue); }
.amber { --state: var(--amber); } .gray { --state: var(--gray); }
.state { color: var(--state); font-weight: 600; }
.state::before { content: ""; display: inline-block; width: 8px; height: 8px; margin-right: 8px; border-radius: 50%;
  background: var(--state); }
label { display: block; margin: 20px 0 6px; font-weight: 600; }
label span { color: var(--muted); font-weight: 400; }
textarea { width: 100%; padding: 10px 12px; font: inherit; color: inherit; background: var(--page);
  border: 1px solid var(--edge); border-radius: 8px; resize: vertical; }
.buttons { display: flex; flex-wrap: wrap; gap: 12px; margin-top: 24px; }
button { flex: 1 1 140px; min-height: 46px; padding: 10px 16px; font: inherit; font-weight: 600; cursor: pointer;
  border-radius: 8px; border: 1px solid transparent; }
button.yes { background: #15703a; color: #fff; }
button.no { background: transparent; color: var(--red); border-color: var(--red); }
button:hover { filter: brightness(1.1); }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
progress { width: 100%; height: 10px; margin-top: 20px; accent-color: var(--blue); }
"""
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
}
"""The page's address is a secret, so browsers must not send the address to other sites, and caches must not store the
page."""


def response_of(page: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """A response that contains the page."""
    return Response(status.value, page, _HEADERS)


def page_of(link: OpenedLink) -> str:
    """The page for a link that has not ended, although it may have been used."""
    task = link["task"]
    title, parts = _title(link), [_facts(task)]
    if link["used_for"] is None and link["is_awaited"]:
        parts.append(_form(link))
    elif link["used_for"] is None and not _is_watched(link):
        parts.append(f'<p class="muted">{_not_awaited(task)}</p>')
    until = _time(link["expires_at"])
    if link["used_at"] is not None:
        note = f"You can close this page. The link was used on {_time(link['used_at'])}, and cannot be used again."
    elif _is_watched(link):
        note = f"This link shows one task until {until}."
    else:
        note = f"This link works once, until {until}, for this task only."
    parts.append(f'<p class="muted">{note}</p>')
    changes = link["used_for"] is None and not link["is_awaited"] and task["finished_at"] is None
    return _page(title, parts, lead=link["message"] if title != link["message"] else "", refreshes=changes)


def refusal(reason: str, *, is_over: bool) -> str:
    """The page for a request that is rejected.

    Args:
        reason: why the request is rejected.
        is_over: whether the link can no longer be used.
    """
    text = f"{reason[:1].upper()}{reason[1:]}."
    if is_over:
        title, hint = "This link cannot be used", "Ask whoever sent you the link for another one, if you still need it."
    else:
        title, hint = "That was not possible", "Nothing was changed. You can go back and try again."
    return _page(title, [f"<p>{escape(text)}</p>", f'<p class="muted">{hint}</p>'])


def _is_watched(link: OpenedLink) -> bool:
    return list(link["actions"]) == [LinkAction.WATCH]


def _title(link: OpenedLink) -> str:
    if (done := link["used_for"]) is not None:
        return _DONE[done]
    return link["message"] or link["task"]["name"] or link["task"]["type"]


def _not_awaited(task: LinkedTask) -> str:
    if task["state"] in TERMINAL:
        return "It was already decided, or has ended: there is nothing left to do."
    return "It does not wait for you at the moment. This page refreshes automatically."


def _facts(task: LinkedTask) -> str:
    color = _COLORS.get(State(task["state"]), "gray")
    rows = [
        *([("Task", escape(task["name"]))] if task["name"] else []),
        ("Type", escape(task["type"])),
        ("State", f'<span class="state {color}">{escape(task["state"].replace("_", " "))}</span>'),
        ("Due", _time(task["due_at"])),
        *([("Ended", _time(task["finished_at"]))] if task["finished_at"] else []),
    ]
    facts = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in rows)
    percent = task["percent"]
    bar = (
        "" if percent is None else f'<progress max="100" value="{percent}" aria-label="Progress">{percent}%</progress>'
    )
    return f"<dl>{facts}</dl>{bar}"


def _form(link: OpenedLink) -> str:
    actions = [LinkAction(each) for each in link["actions"]]
    fields = []
    if link["takes_payload"]:
        fields.append(
            '<label for="payload">Answer <span>(the result of the task, as text)</span></label>'
            '<textarea id="payload" name="payload" rows="3"></textarea>'
        )
    if actions != [LinkAction.COMPLETE]:
        fields.append(
            '<label for="reason">Reason <span>(optional)</span></label>'
            f'<textarea id="reason" name="reason" rows="2" maxlength="{MAX_ACTION_REASON_LENGTH}"></textarea>'
        )
    buttons = "".join(
        f'<button class="{kind}" name="action" value="{action}">{text}</button>'
        for action in actions
        for text, kind in [_BUTTONS[action]]
    )
    return f'<form method="post">{"".join(fields)}<div class="buttons">{buttons}</div></form>'


def _time(iso: str) -> str:
    """A readable time in UTC, because a page without scripts does not know its reader's time zone."""
    day, _, rest = iso.partition("T")
    return f"{day} {rest[:5]} UTC"


def _page(title: str, parts: Sequence[str], *, lead: str = "", refreshes: bool = False) -> str:
    refresh = f'<meta http-equiv="refresh" content="{_REFRESH_SECONDS}">' if refreshes else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{refresh}<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{escape(title)}</h1>{f'<p>{escape(lead)}</p>' if lead else ''}{''.join(parts)}</main></body></html>"
    )
