"""Lessons over the command line and JSON-RPC: learn, count, hint, import, clean; none leaves the device."""

import gzip
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from sync.lessons.quick_match import match_in
from tests.sidecar import Home, Sidecar, wait_until

MESSAGE: Final = "cannot import name 'Depends' from 'fastapi'"
LEARN: Final = (
    *("lessons", "learn", "error", "--lang", "python", "--framework", "fastapi", "--type", "ImportError"),
    *("--message", MESSAGE, "--solution", "循环导入问题，使用延迟导入解决", "--tag", "import", "--tag", "fastapi"),
)
CALL: Final = {"tool": "Bash", "input": {"command": "pytest"}, "error": f"ImportError: {MESSAGE}", "sessionId": "s1"}
SEED_ERROR: Final = {
    "id": "err-20260225-001",
    "timestamp": "2026-02-25T14:30:00Z",
    "language": "python",
    "error": {"type": "ImportError", "message": MESSAGE, "location": "src/api/routes.py:15"},
    "solution": {"description": "循环导入问题，使用延迟导入解决", "actions": ["将导入语句移到函数内部"]},
    "occurrences": 2,
    "last_occurred": "2026-02-25T14:30:00Z",
    "tags": ["import"],
    "odd_field": {"kept": [1, None, "x"]},
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_an_error_is_counted_the_second_time_and_found_by_the_hint(home: Home) -> None:
    assert "已记录到记忆库" in home.run(*LEARN).stdout
    assert "发生 2 次" in home.run(*LEARN).stdout
    assert MESSAGE in home.run("lessons", "search", "循环导入").stdout
    for option in (("--tag", "fastapi"), ("--lang", "python")):
        assert len(home.json("lessons", "search", *option)["lessons"]) == 1
    assert "错误记忆：1（python: 1）" in home.run("lessons", "stats").stdout
    quick = match_in(home.database.parents[2], CALL)
    hint = home.json("lessons", "match", json.dumps(CALL))
    assert quick == hint
    assert "延迟导入" in hint["lesson"]["text"]
    assert len(hint["lesson"]["text"].encode()) <= 480
    assert home.json("lessons", "match", json.dumps(CALL)) == {"lesson": None, "reason": "shown"}


def test_a_cure_is_learned_from_tool_calls_and_shown_after_a_second_session(home: Home) -> None:
    error = "ModuleNotFoundError: No module named 'requests'"

    def capture(command: str, session: str, **more: Any) -> Any:
        return sidecar.call("lessons/capture", tool="Bash", input={"command": command}, sessionId=session, **more)

    with Sidecar(home) as sidecar:
        assert capture("pytest -q", "s1", exitCode=1, error=error)["failure"]
        capture("pip install requests", "s1", exitCode=0)
        mined = [capture("pytest -q", "s1", exitCode=0)["mined"] for _ in range(6)]
        assert sum(map(len, mined)) == 1
        assert [one["state"] for one in sidecar.call("lessons/list")["lessons"]] == ["candidate"]
        assert capture("pytest -q", "s0", exitCode=1, error=error)["lesson"] is None  # one session proves nothing
        capture("pip install requests", "s0", exitCode=0)
        for _ in range(6):
            capture("pytest -q", "s0", exitCode=0)
        assert not capture("pytest", "s2", exitCode=130, error=error)["failure"]
        again = capture("pytest -q", "s2", exitCode=1, error=error)
        assert "pip install requests" in again["lesson"]["text"]
        assert len(again["counted"]) == 1
        assert capture("pytest -q", "s2", exitCode=1, error=error)["reason"] == "shown"
        other = capture("pytest -q", "s3", exitCode=1, error="ModuleNotFoundError: No module named 'numpy'")
        assert other["lesson"] is None
        assert [one["state"] for one in sidecar.call("lessons/list")["lessons"]] == ["held"]


def test_the_newest_failed_call_is_proposed_and_recorded_after_a_confirmation(home: Home) -> None:
    assert "没有记录到失败的命令" in home.run("lessons", "learn", "error").stdout
    assert home.run("lessons", "learn", "error", "--yes", check=False).returncode == 2
    with Sidecar(home) as sidecar:
        for command, code in (("pytest -q", 1), ("pip install requests", 0), ("make lint", 0)):
            error = "ModuleNotFoundError: No module named 'requests'" if code else None
            sidecar.call("lessons/capture", input={"command": command}, exitCode=code, error=error, sessionId="s")
    shown = home.run("lessons", "learn", "error").stdout
    assert "No module named 'requests'" in shown
    assert "可能的解决：pip install requests" in shown
    assert home.json("lessons", "list")["lessons"] == []
    home.run("lessons", "learn", "error", "--yes", "--solution", "装上 requests")
    (lesson,) = home.json("lessons", "list")["lessons"]
    assert lesson["record"]["solution"] == {
        "description": "装上 requests",
        "actions": ["pip install requests"],
        "code_reference": "",
    }
    assert (lesson["record"]["language"], lesson["record"]["context"]["task"]) == ("python", "pytest -q")


def test_an_error_of_two_projects_is_one_instinct_that_names_its_global_lesson(home: Home, tmp_path: Path) -> None:
    home.run(*LEARN)
    with Sidecar(home) as sidecar:
        for name in ("api", "web"):
            call = {**CALL, "input": {"command": "pytest -q tests"}, "exitCode": 1, "sessionId": name}
            sidecar.call("lessons/capture", **call, project=str(tmp_path / name))
        (lesson,) = sidecar.call("lessons/list")["lessons"]
        assert (lesson["isGlobal"], lesson["occurrences"]) == (True, 3)
        (instinct,) = sidecar.call("insights/instincts")["instincts"]
        assert (instinct["kind"], instinct["projectId"], instinct["count"]) == ("fails", "proj_global", 2)
        assert [one["id"] for one in instinct["lessons"]] == [lesson["id"]]
    shown = home.run("insights", "instincts").stdout
    assert shown.count("延迟导入") == 1


def correct(home: Home, text: str, project: Path, session: str, **more: str) -> None:
    payload = {"feedback_type": "correction", "content": text, **more}
    event = {"type": "user_feedback", "session_id": session, "project_path": str(project), "payload": payload}
    home.run("events", "append", json.dumps(event))


def test_a_correction_in_two_projects_is_one_global_lesson_that_waits_for_the_user(home: Home, tmp_path: Path) -> None:
    correct(home, "先写测试", tmp_path / "api", "s1")
    (lesson,) = home.json("lessons", "list")["lessons"]
    assert (lesson["state"], lesson["isGlobal"], lesson["occurrences"]) == ("candidate", False, 1)
    correct(home, "先写测试！", tmp_path / "web", "s2")
    (lesson,) = home.json("lessons", "search", "测试")["lessons"]
    assert (lesson["state"], lesson["isGlobal"], lesson["occurrences"]) == ("candidate", True, 2)
    (instinct,) = home.json("insights", "instincts")["instincts"]
    assert [(one["id"], one["occurrences"]) for one in instinct["lessons"]] == [(lesson["id"], 2)]
    correct(home, "", tmp_path / "web", "s3", feedback_type="rejection", instinct_id=instinct["instinctId"])
    assert [one["state"] for one in home.json("lessons", "list")["lessons"]] == ["candidate"]
    for verdict, state in (("helped", "held"), ("hurt", "held"), ("hurt", "contradicted")):
        home.run("lessons", verdict, lesson["id"])
        assert [one["state"] for one in home.json("lessons", "list")["lessons"]] == [state]
    (file,) = home.database.parents[2].glob("lessons/*/patterns/correction.json")
    assert [record["name"] for record in json.loads(file.read_text("utf-8"))] == ["先写测试"]


@pytest.mark.parametrize("removal", ["clean", "forget"])
def test_a_removed_correction_leaves_no_word_and_is_not_learned_again(home: Home, tmp_path: Path, removal: str) -> None:
    correct(home, "先写测试", tmp_path, "s1")
    (lesson,) = home.json("lessons", "list")["lessons"]
    home.run("lessons", "edit", lesson["id"], '{"tags": ["测试驱动"]}')
    if removal == "clean":
        home.run("lessons", "clean", lesson["id"], "--yes")
    else:
        home.run("forget", home.json("events", "read")["events"][0]["event_id"], "--yes")
    assert home.json("lessons", "list")["lessons"] == []
    assert home.json("insights", "instincts")["instincts"] == []
    files = [path for path in home.database.parents[2].rglob("*") if path.is_file() and "db" not in path.name]
    assert not any("测试" in path.read_text("utf-8", errors="replace") for path in files)
    with sqlite3.connect(home.database) as database:
        dump = "\n".join(database.iterdump())
    assert "测试" not in dump


def test_a_sidecar_writes_the_files_after_a_change_by_another_process(home: Home, tmp_path: Path) -> None:
    with Sidecar(home):
        correct(home, "先写测试", tmp_path, "s1")
        wait_until(lambda: list(home.database.parents[2].glob("lessons/*/patterns/correction.json")) != [])


def test_a_token_at_the_place_where_a_command_is_cut_is_redacted_first(home: Home) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    with Sidecar(home) as sidecar:
        for part in ({"command": f"curl {'x' * 1_970} {token}"}, {"file_path": f"{'y' * 1_975}/{token}/z"}):
            sidecar.call("lessons/capture", tool="Bash", input=part, exitCode=1, error="KeyError: 'k'", sessionId="s")
    with sqlite3.connect(home.database) as database:
        dump = "\n".join(database.iterdump())
    assert "x" * 1_970 in dump
    assert "y" * 1_975 in dump
    assert "ghp_" not in dump


def test_a_tree_of_another_program_is_imported_and_exported_value_for_value(home: Home, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "errors").mkdir(parents=True)
    (tree / "errors" / "python.json").write_text(json.dumps([SEED_ERROR]), "utf-8")
    (tree / "errors" / "broken.json").write_text("{", "utf-8")
    first = home.json("lessons", "import", str(tree))
    assert (first["recorded"], len(first["refusals"])) == (1, 1)
    assert home.json("lessons", "import", str(tree))["known"] == 1
    assert home.json("lessons", "export")["errors"] == [SEED_ERROR]
    home.run("lessons", "export", str(tmp_path / "out"))
    assert json.loads((tmp_path / "out/errors/python.json").read_text("utf-8")) == [SEED_ERROR]
    index = json.loads((tmp_path / "out/index.json").read_text("utf-8"))
    assert index["indexes"]["byTag"] == {"import": ["err-20260225-001"]}


def test_clean_shows_first_and_then_removes_every_trace(home: Home) -> None:
    home.run(*LEARN)
    assert "将清理 1 条" in home.run("lessons", "clean", "--all").stdout
    assert len(home.json("lessons", "list")["lessons"]) == 1
    home.run("lessons", "clean", "--all", "--yes")
    assert home.json("lessons", "list")["lessons"] == []
    assert home.json("search", "循环导入")["hits"] == []
    texts = [path.read_text("utf-8") for path in home.database.parents[2].glob("lessons/*/**/*.json")]
    assert texts
    assert not any("循环导入" in text for text in texts)


@pytest.mark.parametrize("removal", [("clean", "--all"), ("clean", "err"), ("forget",)])
def test_a_removed_lesson_leaves_no_call_from_which_it_is_learned_again(home: Home, removal: tuple[str, ...]) -> None:
    error = "ModuleNotFoundError: No module named 'requests'"

    def capture(sidecar: Sidecar, command: str, session: str, **more: Any) -> Any:
        return sidecar.call("lessons/capture", tool="Bash", input={"command": command}, sessionId=session, **more)

    with Sidecar(home) as sidecar:
        capture(sidecar, "pytest -q", "s1", exitCode=1, error=error)
        capture(sidecar, "pip install requests", "s1", exitCode=0)
        mined = [name for _ in range(6) for name in capture(sidecar, "pytest -q", "s1", exitCode=0)["mined"]]
    if removal[0] == "forget":
        home.run("forget", "--query", "requests", "--yes")
    else:
        home.run("lessons", "clean", *(mined if removal[1] == "err" else ["--all"]), "--yes")
    with Sidecar(home) as sidecar:
        assert capture(sidecar, "pytest -q", "s2", exitCode=1, error=error.replace("requests", "numpy"))["mined"] == []
        assert sidecar.call("lessons/list")["lessons"] == []
    with sqlite3.connect(home.database) as connection:
        payloads = [
            row[0] for row in connection.execute("select payload from events union select message from lesson_calls")
        ]
    assert not any("requests" in payload for payload in payloads)


def test_clean_with_two_choices_removes_nothing(home: Home) -> None:
    home.run(*LEARN)
    assert "什么也没有移除" in home.run("lessons", "clean", "--all", "--duplicates", "--yes", check=False).stderr
    assert len(home.json("lessons", "list")["lessons"]) == 1


def test_lessons_that_differ_in_any_field_are_no_duplicates(home: Home, tmp_path: Path) -> None:
    records = [
        {"id": "a", "language": "python", "error": {"message": ""}, "context": {"task": "one"}},
        {"id": "b", "language": "python", "error": {"message": ""}, "context": {"task": "two"}},
        {"id": "c", "language": "python", "error": {"message": ""}, "context": {"task": "two"}, "occurrences": 3},
    ]
    (tmp_path / "all.json").write_text(json.dumps({"errors": records}), "utf-8")
    assert home.json("lessons", "import", str(tmp_path / "all.json"))["recorded"] == 3
    (found,) = home.json("lessons", "clean", "--duplicates")["lessons"]
    assert found["id"] == "c"


def test_equal_lessons_become_one_with_all_their_counts_and_stay_in_their_project(home: Home, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    home.run(*LEARN, "--project", str(project))
    (lesson,) = home.json("lessons", "list")["lessons"]
    (tmp_path / "all.json").write_text(json.dumps([{**lesson["record"], "id": "b", "occurrences": 4}]), "utf-8")
    home.run("lessons", "import", str(tmp_path / "all.json"))
    assert "将清理 1 条" in home.run("lessons", "clean", "--duplicates").stdout
    home.run("lessons", "clean", "--duplicates", "--yes")
    (kept,) = home.json("lessons", "list")["lessons"]
    assert (kept["id"], kept["occurrences"]) == (lesson["id"], 5)
    assert home.json("lessons", "clean", "--duplicates")["lessons"] == []


def test_clean_by_age_removes_what_was_not_seen_since_with_every_word_of_it(home: Home, tmp_path: Path) -> None:
    old = {**SEED_ERROR, "solution": {"description": "restartthequeue"}, "error": {"message": "queue is stuck"}}
    (tmp_path / "all.json").write_text(json.dumps([old]), "utf-8")
    home.run("lessons", "import", str(tmp_path / "all.json"))
    home.run(*LEARN)
    (found,) = home.json("lessons", "clean", "--older-than", "90d")["lessons"]
    assert found["id"] == old["id"]
    assert len(home.json("lessons", "list")["lessons"]) == 2
    home.run("lessons", "clean", "--older-than", "90d", "--yes")
    (kept,) = home.json("lessons", "list")["lessons"]
    assert kept["id"] != old["id"]
    with sqlite3.connect(home.database) as database:
        assert not any("restartthequeue" in line for line in database.iterdump())
    assert home.run("lessons", "clean", "--older-than", "soon", check=False).returncode == 2


def test_imported_fields_of_another_type_are_kept_and_shown(home: Home, tmp_path: Path) -> None:
    error = {"language": "python", "error": {"message": "odd"}, "timestamp": 5, "solution": "restart it"}
    secret = "sk-" + "ant-api03-" + "a1B2c3D4e5F6g7H8i9J0" * 4
    records = [{"id": "a", **error}, {"id": secret, "language": "go", "error": {"message": "other"}}]
    (tmp_path / "all.json").write_text(json.dumps({"errors": records}), "utf-8")
    home.run("lessons", "import", str(tmp_path / "all.json"))
    shown = home.run("lessons", "list").stdout
    assert "restart it" in shown
    assert secret not in shown
    assert home.run("lessons", "clean", "--older-than", "1d").stdout
    odd = {"id": "b", "language": 3, "error": "text", "tags": "x", "occurrences": "often", "context": [1]}
    (tmp_path / "tree/errors").mkdir(parents=True)
    (tmp_path / "tree/errors/python.json").write_text(json.dumps([odd]), "utf-8")
    home.run("lessons", "import", str(tmp_path / "tree"))
    assert odd in home.json("lessons", "export")["errors"]
    wrong = [1, odd, "x", {"neither": True}]
    (tmp_path / "wrong.json").write_text(json.dumps({"errors": wrong[:3], "patterns": []}), "utf-8")
    refused = home.run("lessons", "import", str(tmp_path / "wrong.json"), check=False)
    assert refused.returncode == 2
    assert all(f"errors[{place}] is no object" in refused.stderr for place in (0, 2))


def test_another_cure_and_other_tags_are_added_to_a_known_lesson(home: Home) -> None:
    home.run(*LEARN, "--action", "first")
    again = home.run(*LEARN[:-6], "--solution", "pin fastapi", "--tag", "new").stdout
    assert "pin fastapi" in again
    (lesson,) = home.json("lessons", "list")["lessons"]
    assert lesson["record"]["tags"] == ["import", "fastapi", "new"]
    assert lesson["record"]["solution"]["actions"] == ["first", "pin fastapi"]
    home.run("lessons", "edit", lesson["id"], "--solution", "better")
    solution = home.json("lessons", "show", lesson["id"])["record"]["solution"]
    assert solution == {"description": "better", "actions": ["first", "pin fastapi"], "code_reference": ""}


def test_a_lesson_that_hurt_is_no_hit_of_a_search(home: Home) -> None:
    home.run(*LEARN)
    assert len(home.json("search", "循环导入")["hits"]) == 1
    (lesson,) = home.json("lessons", "list")["lessons"]
    home.run("lessons", "hurt", lesson["id"])
    assert home.json("search", "循环导入")["hits"] == []


def test_a_forgotten_lesson_is_gone_from_tables_and_files(home: Home) -> None:
    home.run(*LEARN)
    home.run("forget", "--query", "循环导入", "--yes")
    assert home.json("lessons", "list")["lessons"] == []
    assert match_in(home.database.parents[2], CALL)["lesson"] is None


def test_what_a_command_forgets_beside_a_sidecar_leaves_the_files_too(home: Home) -> None:
    def any_file_has_it() -> bool:
        files = home.database.parents[2].glob("lessons/*/**/*.json")
        return any("循环导入" in path.read_text("utf-8") for path in files)

    home.run(*LEARN)
    assert any_file_has_it()
    with Sidecar(home):
        home.run("forget", "--query", "循环导入", "--yes")
        wait_until(lambda: not any_file_has_it())


def test_twenty_processes_that_learn_at_once_lose_nothing(home: Home) -> None:
    home.run("status")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: home.run(*LEARN), range(20)))
    (lesson,) = home.json("lessons", "list")["lessons"]
    assert lesson["occurrences"] == 20


def test_no_text_of_a_lesson_is_queued_for_the_cloud_or_archived_unasked(home: Home, tmp_path: Path) -> None:
    home.run(*LEARN)
    with Sidecar(home) as sidecar:
        for error in ("QwertyError: zxcvbnm happened", None):
            sidecar.call(
                "lessons/capture", tool="Bash", input={"command": "make secretcure"}, error=error, sessionId="s"
            )
    with sqlite3.connect(home.database) as connection:
        sent = "".join(
            row[0] for row in connection.execute("select payload from events join deliveries using (position)")
        )
    home.run("export", str(tmp_path / "plain.xbm"))
    home.run("export", str(tmp_path / "asked.xbm"), "--with-lessons")
    plain, asked = (
        gzip.decompress((tmp_path / f"{name}.xbm").read_bytes()).decode(errors="ignore") for name in ("plain", "asked")
    )
    for word in ("Depends", "循环导入", "zxcvbnm", "secretcure"):
        assert word not in sent
        assert word not in plain
    assert "循环导入" in asked


def test_a_record_that_is_wrong_names_every_field_and_records_nothing(home: Home) -> None:
    record = json.dumps({"language": 3, "tags": "x", "error": {}})
    failed = home.run("lessons", "learn", "error", record, check=False)
    assert failed.returncode == 2
    for field in ("language", "tags", "error.message"):
        assert field in failed.stderr
    assert home.json("lessons", "list")["lessons"] == []


def test_a_review_shows_past_errors_that_fit_a_file_or_a_diff(home: Home, tmp_path: Path) -> None:
    home.run(*LEARN)
    changed = tmp_path / "routes.py"
    changed.write_text("import os\nfrom fastapi import Depends\n", "utf-8")
    shown = home.run("lessons", "review", str(changed)).stdout
    for part in ("发现历史错误模式", "发生 1 次", f"{changed}:2", "建议：循环导入问题，使用延迟导入解决"):
        assert part in shown
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1,0 +1 @@\n+from fastapi import Depends\n"
    (found,) = home.json("lessons", "review", "--diff", stdin=diff)["findings"]
    assert (found["path"], found["line"]) == ("x.py", 1)
    changed.write_text("import os\n", "utf-8")
    assert home.json("lessons", "review", str(changed)) == {"files": 1, "findings": []}
    for wrong in (["lessons", "review"], ["lessons", "review", str(tmp_path / "missing.py")]):
        assert home.run(*wrong, check=False).returncode == 2


def test_doctor_counts_the_lessons_and_names_a_file_that_differs(home: Home) -> None:
    def check() -> Any:
        checks = json.loads(home.run("--json", "doctor", check=False).stdout)["checks"]
        (found,) = [one for one in checks if one["name"] == "lessons"]
        return found

    home.run("status")
    assert (check()["ok"], check()["found"]) == (None, "none")
    home.run(*LEARN)
    assert check()["ok"] is True
    assert check()["found"].startswith("1, of which candidates: 0; ")
    (file,) = home.database.parents[2].glob("lessons/*/errors/python.json")
    file.write_text("[]", "utf-8")
    assert check()["found"].endswith("; differ: errors/python.json")
    home.run("lessons", "list")
    assert check()["ok"] is True
    folder = file.parents[1]
    folder.rename(folder.with_name("away"))
    folder.write_text("a file in the place of the folder", "utf-8")
    assert check()["ok"] is False


def test_a_pattern_is_learned_from_a_file_and_verdicts_and_edits_change_what_is_shown(
    home: Home, tmp_path: Path
) -> None:
    source = tmp_path / "auth_service.py"
    source.write_text(
        "class Auth:\n    def login(self, name: str) -> bool:\n        return 'canary' in name\n", "utf-8"
    )
    home.run("lessons", "learn", "pattern", str(source), "--name", "登录")
    (pattern,) = home.json("lessons", "list")["lessons"]
    assert "login(self, name: str) -> bool" in pattern["record"]["pattern"]["structure"]
    assert "canary" not in json.dumps(pattern)
    home.run(*LEARN)
    (error,) = home.json("lessons", "search", "循环导入")["lessons"]
    home.run("lessons", "edit", error["id"], "--solution", "改用函数内导入")
    home.run("lessons", "hurt", error["id"])
    assert match_in(home.database.parents[2], CALL)["lesson"] is None
    home.run("lessons", "helped", error["id"])
    assert "改用函数内导入" in match_in(home.database.parents[2], CALL)["lesson"]["text"]


def test_a_pattern_is_the_same_by_its_name_and_counted_unless_the_languages_differ(home: Home) -> None:
    learn = ("lessons", "learn", "pattern", "--type", "api-design", "--name")
    home.run(*learn, "统一响应格式", "--lang", "java")
    assert "已有这条记忆" in home.run(*learn, "统一响应格式").stdout
    assert "已有这条记忆" in home.run(*learn, "统一的响应 格式", "--lang", "java").stdout
    home.run(*learn, "统一响应格式", "--lang", "go")
    counts = [lesson["record"]["usage_count"] for lesson in home.json("lessons", "list")["lessons"]]
    assert sorted(counts) == [0, 2]


def test_a_folder_is_a_pattern_with_all_its_files_but_no_hidden_and_installed_ones(home: Home, tmp_path: Path) -> None:
    for name, text in (("a/b/m.py", "class Deep:\n    pass\n"), ("node_modules/x.py", "class Installed:\n    pass\n")):
        file = tmp_path / "src" / name
        file.parent.mkdir(parents=True)
        file.write_text(text, "utf-8")
    structure = home.json("lessons", "learn", "pattern", str(tmp_path / "src"))["lesson"]["record"]["pattern"][
        "structure"
    ]
    assert "Deep" in structure
    assert "Installed" not in structure


def test_a_given_record_keeps_its_counts_and_its_day_and_has_every_field(home: Home) -> None:
    given = {"timestamp": "2026-02-25T14:30:00Z", "error": {"type": "ImportError", "message": "no"}, "occurrences": 2}
    record = home.json("lessons", "learn", "error", "-", stdin=json.dumps(given))["lesson"]["record"]
    assert (record["id"], record["occurrences"]) == ("err-20260225-001", 2)
    assert set(record["error"]) == {"type", "message", "location"}
    assert set(record["solution"]) == {"description", "actions", "code_reference"}
    pattern = home.json("lessons", "learn", "pattern", "--name", "重试", "--type", "testing")["lesson"]["record"][
        "pattern"
    ]
    assert set(pattern) == {"structure", "fields", "example_reference"}
