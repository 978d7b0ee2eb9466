"""`facts list | review | confirm | reject | edit | retract | explain`."""

from typing import Annotated, Any, Final

import typer

from bridge.cli.arguments import project_option, text_argument
from bridge.cli.runner import CommandApp, run_command
from bridge.cli.sidecar_runner import Request

app = CommandApp(help="What is known about you and your projects, and your answers about it.", no_args_is_help=True)

FactIdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id, or its beginning.")]
SECTIONS: Final = {
    "personal": "个人情况",
    "work_habits": "工作习惯",
    "communication_style": "沟通风格",
    "technical_preferences": "技术偏好",
}
STATUSES: Final = {"active": "有效", "candidate": "待确认", "superseded": "已被取代", "retracted": "已撤回"}
ORIGINS: Final = {
    "user-stated": "你说过",
    "user-confirmed": "你确认过",
    "agent-proposed": "程序提出",
    "imported": "导入",
    "other-device": "其他设备",
}
VERDICTS: Final = {
    "confirmed": "确认",
    "rejected": "拒绝",
    "edited": "修改",
    "retracted": "撤回",
    "superseded": "被取代",
    "questioned": "模型认为已变",
    "doubted": "模型认为读错",
}


@app.command("list")
def list_facts(
    words: Annotated[str, typer.Argument(help="Words that a fact has all of.")] = "",
    *,
    status: Annotated[str, typer.Option(help="active, candidate, superseded, retracted or all.")] = "active",
    kind: Annotated[str | None, typer.Option(help="identity, preference, habit, constraint, plan, decision …")] = None,
    project: Annotated[str | None, typer.Option(help="Id or path of a project: its facts, and yours.")] = None,
) -> None:
    """What is known, newest first."""
    params = _without_none(query=words, status=status, kind=kind, project=project_option(project))
    _call("understanding/facts", params, _show_list)


@app.command("review")
def review() -> None:
    """What waits for you: candidates, none of which counts as known, and facts that a newer sentence questions."""
    _call("understanding/review", {}, _show_review)


@app.command("confirm")
def confirm(fact_id: FactIdArgument) -> None:
    """Confirm a candidate or a questioned fact, or bring back a retracted one."""
    _call("understanding/confirm", {"factId": fact_id}, _show_answer("已确认"))


@app.command("reject")
def reject(fact_id: FactIdArgument) -> None:
    """Reject a candidate."""
    _call("understanding/reject", {"factId": fact_id}, _show_answer("已拒绝"))


@app.command("edit")
def edit(
    fact_id: FactIdArgument, text: Annotated[str, typer.Argument(help="The new words; - reads standard input.")]
) -> None:
    """Give a fact other words, which confirms it."""
    _call("understanding/edit", {"factId": fact_id, "text": text_argument(text)}, _show_answer("已修改"))


@app.command("retract")
def retract(fact_id: FactIdArgument) -> None:
    """Retract a fact for good; `facts confirm` brings it back."""
    _call("understanding/retract", {"factId": fact_id}, _show_answer("已撤回"))


@app.command("explain")
def explain(fact_id: FactIdArgument) -> None:
    """Why a fact is what it is: where you said it, your answers, what it replaced, and what replaced it."""
    _call("understanding/explain", {"factId": fact_id}, _show_explanation)


def _call(method: str, params: dict[str, Any], show: Any) -> None:
    """Run a method as a helper: an edit of the memory file that no sidecar has read retracts or edits facts first."""
    run_command(Request(method, params, show))


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _show_list(result: dict[str, Any]) -> None:
    if not result["facts"]:
        typer.echo("没有符合的事实")
    for section, title in SECTIONS.items():
        of_section = [fact for fact in result["facts"] if fact["section"] == section]
        if of_section:
            typer.echo(f"{title}（{len(of_section)} 条）")
        for fact in of_section:
            typer.echo(_line(fact))
    waiting = result["counts"]["candidate"] - sum(fact["status"] == "candidate" for fact in result["facts"])
    if waiting:
        typer.echo(f"另有 {waiting} 条待确认：xiaobai-memory facts review")
    if result["counts"]["questioned"]:
        typer.echo(f"{result['counts']['questioned']} 条存疑，等你回答：xiaobai-memory facts review")


def _show_review(result: dict[str, Any]) -> None:
    if not result["facts"]:
        typer.echo("没有待确认的事实")
        return
    candidates, questioned = result["counts"]["candidate"], result["counts"]["questioned"]
    if candidates:
        typer.echo(f"{candidates} 条待确认，用 facts confirm 或 facts reject 回答：")
    if questioned:
        typer.echo(f"{questioned} 条存疑：仍然如此用 facts confirm，不再如此用 facts retract：")
    for fact in sorted(result["facts"], key=lambda one: one["status"] == "active"):
        said_by = "" if fact["author"] == "device" else f"（{ORIGINS[fact['origin']]}）"
        typer.echo(_line(fact) + said_by)


def _show_answer(done: str) -> Any:
    def show(result: dict[str, Any]) -> None:
        fact = result["fact"]
        over = f"，但 {fact['validUntil']} 已过，不再有效" if _is_over(fact) else ""
        typer.echo(f"{done}{over}：{fact['statement']}")

    return show


def _show_explanation(result: dict[str, Any]) -> None:
    fact = result["fact"]
    typer.echo(fact["statement"])
    typer.echo(f"- ID：{fact['factId']}")
    typer.echo(f"- 状态：{_status(fact)}，{SECTIONS[fact['section']]}，来源：{ORIGINS[fact['origin']]}")
    if fact["slot"]:
        typer.echo(f"- 主题：{fact['slot']}")
    until = f" 至 {_day(fact['validUntil'])}" if fact["validUntil"] else ""
    typer.echo(f"- 时间：{_day(fact['validFrom'])}{until}")
    for said in result["statements"]:
        typer.echo(f"- {_day(said['at'])} {ORIGINS[said['origin']]}：{said['text']}（{said['eventId']}）")
    for verdict in result["verdicts"]:
        text = f"：{verdict['text']}" if verdict["text"] else ""
        typer.echo(f"- {_day(verdict['at'])} {VERDICTS[verdict['verdict']]}{text}")
    for older in result["supersedes"]:
        typer.echo(f"- 取代了：{older['statement']}（{_day(older['validFrom'])}）")
    if (newer := result["replacedBy"]) is not None:
        typer.echo(f"- 被取代：{newer['statement']}（{_day(newer['validFrom'])}）")
    if (doubt := fact["questionedBy"]) is not None:
        typer.echo(f"- 存疑：{_day(doubt['at'])} 你说：{doubt['statement']}（{doubt['factId']}）")


def _line(fact: dict[str, Any]) -> str:
    status = "" if fact["status"] == "active" else f"（{_status(fact)}）"
    elsewhere = "（其他设备）" if fact["author"] == "device" else ""
    doubt = fact["questionedBy"]
    name = "部分已过时" if fact["outdatedPart"] else "存疑"
    question = f"（{_day(fact['validFrom'])}；{name}，{_day(doubt['at'])} 你说：{doubt['statement']}）" if doubt else ""
    return f"- [{fact['factId']}] {fact['statement']}{status}{elsewhere}{question}"


def _status(fact: dict[str, Any]) -> str:
    return "已过期" if _is_over(fact) else STATUSES[fact["status"]]


def _is_over(fact: dict[str, Any]) -> bool:
    """Whether the last day of a fact is over; nothing replaced it. Else its end is a time."""
    is_ended = fact["status"] == "superseded" and fact["supersededBy"] is None
    return is_ended and fact["validUntil"] is not None and "T" not in fact["validUntil"]


def _day(time: str) -> str:
    return time[:10]
