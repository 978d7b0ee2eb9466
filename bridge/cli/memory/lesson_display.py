"""How the commands of `lessons` print their results for people."""

from typing import Any, Final

import typer

KIND_NAMES: Final = {"error": "错误", "pattern": "模式"}
COUNT_NAMES: Final = {"error": "发生", "pattern": "使用"}


def show_learned(result: dict[str, Any]) -> None:
    lesson = result["lesson"]
    known = f"已有这条记忆，{COUNT_NAMES[lesson['kind']]} {lesson['occurrences']} 次"
    typer.echo("已记录到记忆库" if result["recorded"] else known)
    typer.echo(f"- 类型：{KIND_NAMES[lesson['kind']]}")
    typer.echo(f"- ID：{lesson['id']}")
    typer.echo(f"- 标签：{', '.join(lesson['record'].get('tags') or []) or '-'}")
    texts = _cure_texts(lesson["record"])
    if not result["recorded"] and any(texts):
        typer.echo(f"- 解决方案：{'；'.join(str(text) for text in texts if text)}")
    typer.echo(f"- 相关记忆：{len(result['related'])} 条")


def show_proposal(result: dict[str, Any]) -> None:
    record = result["record"]
    if record is None:
        typer.echo("没有记录到失败的命令；用 --message 给出错误，--solution 给出解决办法")
        return
    error = record["error"]
    typer.echo(f"最近的错误：{': '.join(part for part in (error['type'], error['message']) if part)}")
    typer.echo(f"- 命令：{record['context']['task'] or '-'}")
    typer.echo(f"- 可能的解决：{'；'.join(record['solution']['actions']) or '-'}")
    typer.echo("加 --yes 记录；或用 --solution 写明解决办法")


def _cure_texts(record: dict[str, Any]) -> list[Any]:
    """The texts of a solution. An imported record is kept value for value, so it may be of any type."""
    solution = record.get("solution")
    if not isinstance(solution, dict):
        return [solution]
    actions = solution.get("actions")
    return [solution.get("description"), *(actions if isinstance(actions, list) else [actions])]


def show_found(result: dict[str, Any]) -> None:
    lessons = result["lessons"]
    typer.echo(f"找到 {len(lessons)} 条相关记忆")
    for kind, name in KIND_NAMES.items():
        of_kind = [lesson for lesson in lessons if lesson["kind"] == kind]
        if of_kind:
            typer.echo(f"相关{name} ({len(of_kind)} 条)")
        for lesson in of_kind:
            show_line(lesson)


def show_line(lesson: dict[str, Any]) -> None:
    record = lesson["record"]
    if lesson["kind"] == "pattern":
        typer.echo(f"- [{lesson['id']}] {lesson['title']}")
        if record.get("when_to_use"):
            typer.echo(f"  - 使用场景：{'；'.join(map(str, record['when_to_use']))}")
        return
    typer.echo(f"- [{lesson['id']}] {lesson['title']} (发生 {lesson['occurrences']} 次)")
    if cure := _cure_of(record):
        typer.echo(f"  - {_cure_heading(lesson, '解决方案')}：{cure}")


def _cure_heading(lesson: dict[str, Any], confirmed: str) -> str:
    """What comes before a cure: a candidate is not shown to agents before the person confirms it."""
    return f"未确认的做法（lessons helped {lesson['id']} 确认）" if lesson["state"] == "candidate" else confirmed


def _cure_of(record: dict[str, Any]) -> str:
    texts = _cure_texts(record)
    return "；".join(str(text) for text in texts if text)


def show_stats(result: dict[str, Any]) -> None:
    languages = ", ".join(f"{name}: {count}" for name, count in result["errorsByLanguage"].items())
    typer.echo(f"- 总记忆数：{result['total']}")
    typer.echo(f"- 错误记忆：{result['errors']}" + (f"（{languages}）" if languages else ""))
    typer.echo(f"- 模式记忆：{result['patterns']}")
    typer.echo(f"- 最近 7 天新增：{result['newInSevenDays']}")
    top = "；".join(f"{one['title']}（{one['occurrences']} 次）" for one in result["topRepeated"])
    typer.echo(f"- 重复错误 TOP 3：{top or '-'}")
    typer.echo(f"- 文件：{result['path']}")


def show_findings(result: dict[str, Any]) -> None:
    if not result["findings"]:
        typer.echo(f"已检查 {result['files']} 个文件，没有相符的历史错误")
        return
    typer.echo("⚠ 发现历史错误模式：")
    for finding in result["findings"]:
        lesson, line = finding["lesson"], finding["line"]
        typer.echo(f"- [{lesson['id']}] {lesson['title']} 曾发生 {lesson['occurrences']} 次")
        typer.echo(f"  当前文件：{finding['path']}" + (f":{line}" if line is not None else ""))
        if cure := _cure_of(lesson["record"]):
            typer.echo(f"  {_cure_heading(lesson, '建议')}：{cure}")


def show_cleaned(result: dict[str, Any]) -> None:
    for lesson in result["lessons"]:
        show_line(lesson)
    count = len(result["lessons"])
    if not count:
        typer.echo("没有要清理的记忆")
    else:
        typer.echo(f"已清理 {count} 条" if result["removed"] else f"将清理 {count} 条；加 --yes 执行")
