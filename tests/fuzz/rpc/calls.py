"""Malformed JSON-RPC: valid calls of every method, changed in meaning, spelling and bytes.

Texts are put together by hand, not by a JSON library: what is attacked with (repeated names, half surrogates,
numbers beyond every range) no library would write.
"""

import json
import os
import random
from collections.abc import Mapping
from typing import Any, Final

from bridge.methods.registry import METHOD_TABLE

PERSON: Final = {"email": "person@example.com", "password": "a long password"}
SHA: Final = "0123456789abcdef" * 4
NOTHING: Final = os.devnull  # a file that is there, with nothing in it
EVENT: Final = {
    "type": "note_taken",
    "project_path": "/家",
    "payload": {"text": "记住"},
    "event_id": "evt_a",
    "ts": "2026-02-02T10:00:00Z",
}
NOTE_PAYLOAD: Final = {
    "scene": "选择数据库",
    "principles": ["用甲", "用乙"],
    "choice": "用甲",
    "source": "choice",
    "confidence": "high",
    "apply": "project",
}
VALID: Final[Mapping[str, tuple[Mapping[str, Any], ...]]] = {
    "initialize": ({}, {"protocolVersion": 1, "clientInfo": {"name": "x"}, "parentPid": 1, "locale": "zh-CN"}),
    "memory/load": ({}, {"waitMs": 0, "scope": "device", "maxChars": 500}),
    "memory/update": (
        {"userMessage": "你好", "aiResponse": "好的", "sessionId": "s", "projectPath": "/家", "importance": 0.5},
        {"userMessage": "", "aiResponse": "", "idempotencyKey": "k"},
    ),
    "memory/systemPrompt": ({"waitMs": 0, "maxChars": 2000},),
    "memory/save": ({"document": "# AI 对话记忆\n- 一\n", "baseSha256": SHA, "allowLoss": False},),
    "memory/history": ({"limit": 3},),
    "memory/restore": ({"sha256": SHA},),
    "memory/resolve": ({"answer": "accept"}, {"answer": "restore"}),
    "lessons/learn": (
        {"kind": "error", "record": {"language": "python", "error": {"type": "E", "message": "坏"}, "tags": ["a"]}},
    ),
    "lessons/propose": ({},),
    "lessons/list": ({}, {"query": "坏", "kind": "error", "tag": "a", "language": "python"}),
    "lessons/show": ({"id": "err-20260101-001"},),
    "lessons/edit": ({"id": "err-20260101-001", "changes": {"tags": ["b"]}},),
    "lessons/judge": ({"id": "err-20260101-001", "verdict": "helped"},),
    "lessons/clean": ({"olderThanDays": 90, "confirm": False}, {"duplicates": True}),
    "lessons/stats": ({},),
    "lessons/export": ({},),
    "lessons/import": ({"path": "/nowhere/memory", "dryRun": True},),
    "lessons/match": ({"tool": "Bash", "input": {"command": "pytest"}, "error": "E: 坏", "sessionId": "s"},),
    "lessons/capture": ({"tool": "Bash", "input": {"command": "pytest"}, "output": "E: 坏", "exitCode": 1},),
    "lessons/review": ({"diff": "+++ b/a.py\n+import x\n"},),
    "notes/remember": ({"projectPath": "/nowhere", "payloads": [NOTE_PAYLOAD], "language": "zh"},),
    "notes/extract": ({"projectPath": "/nowhere", "payloads": [NOTE_PAYLOAD]},),
    "notes/init": ({"projectPath": "/nowhere", "payloads": [NOTE_PAYLOAD]},),
    "notes/answer": ({"projectPath": "/nowhere", "questionId": "q_a", "option": "b"},),
    "notes/questions": ({"projectPath": "/nowhere"},),
    "notes/retrieve": ({"projectPath": "/nowhere", "message": "选择数据库"},),
    "notes/sniff": ({"projectPath": "/nowhere", "decisionPoint": "选择数据库", "options": ["甲", "乙"]},),
    "notes/list": ({"projectPath": "/nowhere", "status": "active"},),
    "notes/show": ({"projectPath": "/nowhere", "id": "MEM-a"},),
    "notes/take": ({"projectPath": "/nowhere", "ids": ["MEM-a"]},),
    "daily/take": ({},),
    "notes/archive": ({"projectPath": "/nowhere", "id": "MEM-a", "status": "local"},),
    "notes/delete": ({"projectPath": "/nowhere", "id": "MEM-a"},),
    "notes/export": ({"projectPath": "/nowhere", "path": "/nowhere"},),
    "notes/session": ({"projectPath": "/nowhere", "language": "en"},),
    "notes/doctor": ({"projectPath": "/nowhere"},),
    "understanding/facts": ({}, {"status": "all", "project": "/家", "query": "港口", "limit": 5}),
    "understanding/review": ({"limit": 5},),
    "understanding/confirm": ({"factId": "fact_a"},),
    "understanding/reject": ({"factId": "fact_a"},),
    "understanding/edit": ({"factId": "fact_a", "text": "喜欢简短的回答"},),
    "understanding/retract": ({"factId": "fact_a", "reason": "document"},),
    "understanding/explain": ({"factId": "fact_a"},),
    "lan/status": ({},),
    "lan/peers": ({},),
    "lan/connect": ({"host": "127.0.0.1", "port": 9},),
    "lan/pair": ({}, {"code": "1234 5678", "host": "127.0.0.1", "port": 9}),
    "lan/cancelPairing": ({},),
    "lan/forget": ({"deviceId": "device-b"},),
    "sync/status": ({},),
    "sync/now": ({"timeoutMs": 2000},),
    "sync/quarantine": ({"action": "list"}, {"action": "drop", "eventIds": ["evt_a"]}, {"action": "retry"}),
    "auth/start": ({"email": "person@example.com"}, {"phone": "13800138000"}),
    "auth/verify": ({"email": "person@example.com", "code": "123456", "accept": False},),
    "auth/password": (PERSON,),
    "auth/setSession": ({"accessToken": "x.y.z", "expiresAt": 1.9e9},),
    "auth/status": ({},),
    "auth/logout": ({}, {"localCopy": "keep", "evenUnsent": False}),
    "devices/list": ({},),
    "devices/rename": ({"deviceId": "device-a", "name": "书房"},),
    "devices/revoke": ({"deviceId": "device-b"},),
    "devices/admit": ({"deviceId": "device-b"}, {"recover": True}),
    "devices/refuse": ({"deviceId": "device-b"},),
    "changes/list": ({},),
    "changes/accept": ({"ids": ["evt_a"]},),
    "changes/refuse": ({"ids": ["evt_a"]},),
    "devices/hide": ({"deviceId": "device-b", "hidden": True},),
    "events/append": ({"event": EVENT},),
    "events/appendBatch": ({"events": [EVENT, {"type": "message", "payload": {"content": "x" * 200}}]},),
    "events/get": ({"eventIds": ["evt_a", "evt_b"]},),
    "memory/forget": (
        {"query": "火锅", "preview": True},
        {"factId": "evt_a", "undoSeconds": 3},
        {"eventIds": ["evt_a"], "token": "1.a"},
    ),
    "review/list": ({"kinds": ["fact", "daily"], "limit": 3}, {"cursor": "WyIwIiwiIiwiIl0="}),
    "review/answer": ({"itemId": "fact:evt_a", "answer": "edit", "text": "新的说法"},),
    "memory/undo": ({"requestId": "evt_a"}, {}),
    "events/read": ({"since_ts": "2026-02-02T10:00:00Z", "after": 0, "types": ["note_taken"], "limit": 5},),
    "events/tail": ({"project_id": "proj_global", "limit": 2, "follow": False},),
    "events/unfollow": ({},),
    "events/forget": ({"eventIds": ["evt_a"]},),
    "events/verify": ({},),
    "events/files": ({},),
    "events/rebuildFiles": ({},),
    "events/import": ({"paths": ["/nowhere/events.jsonl"]},),
    "sessionMeta/upsert": ({"meta": {"session_id": "sess_1", "title": "题目", "tags": ["api"]}},),
    "sessionMeta/list": ({"project_id": "proj_global", "days": 90, "limit": 5},),
    "insights/next": ({"projectId": "proj_global", "stage": "test", "limit": 3},),
    "insights/profile": ({"limit": 3},),
    "insights/instincts": ({"status": "promoted", "limit": 3},),
    "insights/report": ({"format": "html", "days": 7},),
    "daily/record": (
        {"turns": [{"role": "user", "content": "端口是 8080"}], "force": True},
        {"summary": {"topic": "题目", "facts": ["事实"], "code": [{"text": "x"}], "tags": ["t"]}},
    ),
    "daily/add": ({"summary": {"topic": "题目"}, "date": "2026-01-29", "time": "10:30:45", "important": True},),
    "daily/edit": ({"id": "rec_1", "topic": "题目", "facts": ["事实"]},),
    "daily/remove": ({"id": "rec_1"},),
    "daily/mark": ({"id": "rec_1", "mark": "important", "on": False},),
    "daily/undo": ({"eventId": "evt_a"},),
    "daily/show": ({"date": "2026-01-29", "project": "/nowhere"},),
    "daily/list": ({"since": "2026-01-01", "mark": "important", "limit": 3},),
    "daily/review": ({"language": "en"},),
    "daily/merge": ({"date": "2026-01-29", "dryRun": True},),
    "daily/clean": ({"confirm": False},),
    "daily/config": ({"option": "recording.auto_save", "value": True},),
    "daily/status": ({},),
    "memory/command": ({"text": "搜索记忆: 火锅", "isFirst": True},),
    "recall/search": (
        {"query": "端口", "limit": 5, "scope": "recent", "project": "/家", "turns": ["上次说的端口"]},
        {"query": "火锅", "since": "2026-01-01", "until": "2026-12-31T10:00:00Z", "kinds": ["exchange"]},
        {"query": "记住", "weights": {"keyword": 0.5, "semantic": 0.5, "decay": 0.99}},
    ),
    "recall/context": ({"query": "记住", "maxChars": 500, "weights": "seed004"}, {"query": "你好", "limit": 3}),
    "archive/export": ({"path": "/nowhere/all.xbm"}, {"path": "/nowhere/sealed.xbm", "passphrase": "a passphrase"}),
    "archive/paste": ({"text": "- likes tea", "dryRun": True}, {"text": "x"}),
    "archive/import": (
        {"path": "/nowhere/all.xbm", "passphrase": "a passphrase"},
        {"path": NOTHING, "dryRun": True},
        {"path": NOTHING, "program": "codex"},
    ),
    "retention/plan": ({"days": 30}, {"megabytes": 0}),
    "retention/apply": ({"days": 30}, {"megabytes": 1}),
    "redaction/check": ({"text": "密码是 hunter2，邮箱 person@example.com"},),
    "redaction/rescan": ({}, {"apply": True}),
    "events/forgetMatching": (
        {"query": "火锅", "dryRun": False},
        {"source": "device-a", "since": "2026-02-02", "until": "2026-02-02T10:00:00Z"},
    ),
    "watermarks/get": ({"name": "mine"},),
    "watermarks/set": ({"name": "mine", "position": 3}, {"name": "mine", "eventId": "evt_a"}),
    "doctor": ({},),
}

METHODS: Final = tuple(METHOD_TABLE)

NUMBERS: Final = (
    "0", "-0", "-1", "1e3", "1.5", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
    "18446744073709551616", "2147483648", "4294967296", "1e308", "1e309", "-1e999", "1e-400", "0." + "1" * 400,
    "9" * 5000,
    "01", "+1", "1.", ".5", "0x10", "NaN", "Infinity", "-Infinity", "1_000", "1e", "--1",
)  # fmt: skip
STRINGS: Final = (
    "", " ", "\\u0000", "a\\u0000b", "\\ud800", "\\udc00x", "\\ud83d\\ude00", "\\ud83d", "\\u202e", "\\ufeff",
    "\\uffff",
    "\\x41", "\\", "\\u12", "../../etc/passwd", "' or 1=1 --", "%s%n", "{{7*7}}", "$ref", "__proto__", "\\r\\n\\r\\n",
    "9999-99-99", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-02-02T10:00:00", "Content-Length: 5",
    "-----BEGIN PRIVATE KEY-----", "\x7f", "\u2028", "记" * 300, "\\n" * 50, "1e5", "null", "evt_" + "x" * 200,
)  # fmt: skip
LONG: Final = 300_000
IDS: Final = (
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "-7", "1.0", "1e2", '"x"', '""', '"\\u8bb0"', '"记"', "null",
    "9223372036854775807", "1e300", "true", "[1]",
    "{}", '"' + "i" * 5000 + '"', "18446744073709551616", "1e400", '"\\ud800"',
)  # fmt: skip
WORDS: Final = ("userMessage", "limit", "event", "name", "x", "jsonrpc", "", "params", "\\u0000", "deviceId")


def random_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def hostile_value(chance: random.Random, deep: int = 3) -> str:
    """Any JSON value, or nearly one."""
    kind = chance.randrange(9)
    if kind == 0:
        return chance.choice(NUMBERS)
    if kind in {1, 2}:
        return f'"{chance.choice(STRINGS)}"'
    if kind == 3:
        return chance.choice(["null", "true", "false", "[]", "{}", "[[]]", "tru", "undefined"])
    if kind == 4 and deep:
        return f"[{','.join(hostile_value(chance, deep - 1) for _ in range(chance.randrange(4)))}]"
    if kind == 5 and deep:
        pairs = (f'"{chance.choice(WORDS)}":{hostile_value(chance, deep - 1)}' for _ in range(chance.randrange(4)))
        return "{" + ",".join(pairs) + "}"
    if kind == 6:
        levels = chance.choice([5, 50, 58, 60, 62, 64, 65, 66, 200, 5000])
        opening, closing = chance.choice([("[", "]"), ('{"a":', "}")])
        return opening * levels + "1" + closing * levels
    if kind == 7:
        return '"' + chance.choice(["a", "记", "\\n", "\\u0001", "😀"]) * (chance.randrange(LONG) // 4) + '"'
    return random_text(chance.choice([1, "x", [1], {"a": 1}, True]))


def hostile_like(value: object, chance: random.Random) -> str:
    """An odd value of the same type, so that it passes the first check, or else any odd value."""
    if isinstance(value, dict) and value and chance.random() < 0.7:
        return random_members({name: random_text(inner) for name, inner in value.items()}, value, chance)
    if isinstance(value, list) and value and chance.random() < 0.7:
        return f"[{','.join(hostile_like(chance.choice(value), chance) for _ in range(chance.randrange(1, 4)))}]"
    if isinstance(value, int | float) and chance.random() < 0.6:
        return chance.choice(NUMBERS)
    if isinstance(value, str) and chance.random() < 0.6:
        return f'"{chance.choice(STRINGS)}"'
    return hostile_value(chance)


def random_params(chance: random.Random, method: str) -> str:
    """Parameters of a method, right or with some of them exchanged, missing, doubled or new."""
    if chance.random() < 0.1:
        return hostile_value(chance)
    chosen = chance.choice(VALID[method])
    return random_members({name: random_text(value) for name, value in chosen.items()}, chosen, chance)


def random_members(given: dict[str, str], values: Mapping[str, Any], chance: random.Random) -> str:
    """An object some of whose members are hostile."""
    for name in list(given):
        if chance.random() < 0.4:
            given[name] = hostile_like(values[name], chance)
        elif chance.random() < 0.1:
            del given[name]
    written = [f'"{name}":{value}' for name, value in given.items()]
    if chance.random() < 0.15:
        written.append(f'"{chance.choice(WORDS)}":{hostile_value(chance)}')
    if written and chance.random() < 0.05:
        written.append(chance.choice(written))
    return "{" + ",".join(written) + "}"


def random_call(chance: random.Random) -> str:
    """One request, more or less."""
    method = chance.choice(METHODS)
    named = f'"{method}"'
    if chance.random() < 0.08:
        odd = [named.upper(), f'"{method} "', '"rpc.discover"', '"$/cancelRequest"', '""', '"\\u0000"', "1", "null"]
        named = chance.choice(odd)
    parts = ['"jsonrpc":"2.0"', f'"id":{chance.choice(IDS)}', f'"method":{named}']
    parts.append(f'"params":{random_params(chance, method)}')
    for at in range(len(parts)):
        if chance.random() < 0.03:
            parts[at] = f'"{chance.choice(WORDS)}":{hostile_value(chance)}'
    if chance.random() < 0.05:
        parts.append(chance.choice([*parts, '"result":1', '"error":{}', '"extra":1']))
    if chance.random() < 0.06:
        del parts[chance.randrange(len(parts))]
    if chance.random() < 0.3:
        chance.shuffle(parts)
    return "{" + chance.choice([",", ", ", " ,\t"]).join(parts) + "}"


def random_frame(chance: random.Random) -> bytes:
    """What is sent as one frame: a call, a batch, or one of them with damaged bytes. Never a line feed in it."""
    if chance.random() < 0.12:
        inside = [
            random_call(chance) if chance.random() < 0.8 else hostile_value(chance) for _ in range(chance.randrange(5))
        ]
        whole = f"[{','.join(inside)}]".encode("utf-8", "surrogatepass")
    else:
        whole = random_call(chance).encode("utf-8", "surrogatepass")
    for _ in range(chance.choice([0, 0, 0, 0, 1, 2])):
        whole = damage(whole, chance)
    return whole.replace(b"\n", b" ").strip(b" \t\r") or b"?"


def damage(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return b"?"
    at, other = chance.randrange(len(data)), chance.randrange(len(data) + 1)
    kind = chance.randrange(6)
    if kind == 0:
        return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + chance.randbytes(chance.randrange(1, 4)) + data[at:]
    if kind == 3:
        start, end = sorted((at, other))
        return data[:start] + data[end:]
    if kind == 4:
        return data + data[at:]
    return (
        data[:at] + chance.choice([b"\0", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc0\xaf", b'"', b"\\", b","]) + data[at:]
    )
