"""Settings: the first found wins, an unknown name or a bad value is named, and no key is ever printed."""

import base64
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from sync.errors import ServiceKeyRefused, SettingsError
from sync.settings.settings import Settings, is_service_key, read_embeddings_key

KEY = "sb_publishable_ThisIsTheKeyThatNobodyMaySee"
SECRET = "sb_secret_ThisOneEvenLess"
Gather = Callable[..., Settings]


def jwt(role: str) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"role": role, "iss": "supabase"}).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJIUzI1NiJ9.{claims}.c2lnbmF0dXJl"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of its own, and an environment without any setting but its name."""
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("XIAOBAI_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path


def write_config(home: Path, text: str) -> None:
    (home / "data" / "config.toml").write_text(text, "utf-8")


def refusal(**flags: object) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        Settings.from_sources(**flags)
    assert caught.value.hint
    assert KEY not in str(caught.value) + caught.value.hint
    assert SECRET not in str(caught.value) + caught.value.hint
    assert caught.value.__cause__ is None, "a cause would show what was typed"
    return caught.value


def test_without_any_setting_everything_has_a_default(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XIAOBAI_DATA_DIR")
    settings = Settings.from_sources()
    assert settings.memory_file == home / "xiaobai-ai-memory.md"
    assert settings.data_dir.is_absolute()
    assert settings.data_dir.is_relative_to(home)
    assert settings.supabase_url is None
    assert settings.device_name


def test_a_flag_wins_over_the_environment_and_that_over_the_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(home, 'device_name = "from the file"\ndevice_id = "from-the-file"\nlog_level = "debug"\n')
    monkeypatch.setenv("XIAOBAI_DEVICE_NAME", "from the environment")
    monkeypatch.setenv("XIAOBAI_DEVICE_ID", "from-the-environment")
    settings = Settings.from_sources(device_name="from the flag", device_id=None)
    assert settings.device_name == "from the flag"
    assert settings.device_id == "from-the-environment", "a flag that was not given does not count"
    assert settings.log_level == "DEBUG"


def test_the_file_is_that_of_the_data_directory_which_a_flag_names(home: Path) -> None:
    write_config(home, 'device_name = "not this one"\n')
    other = home / "elsewhere"
    other.mkdir()
    (other / "config.toml").write_text('device_name = "this one"\n')
    assert Settings.from_sources(data_dir=other).device_name == "this one"


def test_nested_settings_have_a_double_underscore_or_a_table(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(home, "[sync]\npoll_seconds = 7\ntimeout_seconds = 3\n[privacy]\nstore_messages = true\n")
    monkeypatch.setenv("XIAOBAI_SYNC__POLL_SECONDS", "9.5")
    settings = Settings.from_sources()
    assert (settings.sync.poll_seconds, settings.sync.timeout_seconds) == (9.5, 3.0)
    assert settings.privacy.store_messages


@pytest.mark.parametrize(
    "name",
    [
        "XIAOBAI_MEMORYFILE",
        "XIAOBAI_",
        "XIAOBAI__SYNC",
        "xiaobai_device",
        "XIAOBAI_SYNC__POLL",
        "XIAOBAI_DEVICE_ID__X",
        "XIAOBAI_SYNC__POLL_SECONDS__X",
        "XIAOBAI_SUPABASE_KEY__X",
        "XIAOBAI_RECALLED__WEIGHTS",
    ],
)
def test_an_unknown_variable_is_refused_and_named(home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, KEY)
    assert name in refusal().message


def test_variables_of_other_programs_do_not_matter(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XIAOBAIX_SOMETHING", "1")
    monkeypatch.setenv("MY_XIAOBAI_MEMORY", "1")
    Settings.from_sources()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("memoryfile = 'x'\n", "memoryfile"),
        ("[sync]\npoll = 3\n", "sync.poll"),
        ("[privacy]\nstore_message = true\n", "privacy.store_message"),
        ("[nothing]\na = 1\n", "nothing"),
    ],
)
def test_an_unknown_name_in_the_file_is_refused_and_named(home: Path, text: str, name: str) -> None:
    write_config(home, text)
    assert name in refusal().message


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LOG_LEVEL", "loud"),
        ("DEVICE_ID", "has a space"),
        ("DEVICE_ID", "x" * 129),
        ("DEVICE_NAME", ""),
        ("TOKEN_STORE", "sqlite"),
        ("SYNC__POLL_SECONDS", "0"),
        ("SYNC__POLL_SECONDS", "soon"),
        ("SYNC__POLL_SECONDS", "nan"),
        ("SYNC__TIMEOUT_SECONDS", "3600"),
        ("SYNC__PUSH_EVENTS", "501"),
        ("RECORD__MIN_IMPORTANCE", "1.5"),
        ("PRIVACY__STORE_MESSAGES", "perhaps"),
        ("DOCUMENT__KEEP_VERSIONS", "1"),
        ("LOAD__OTHER_DEVICES", "all"),
        ("REDACTION__PATTERNS", "not json"),
        ("SYNC", "not json"),
        ("MEMORY_FILE", ""),
        ("DATA_DIR", ""),
        ("RECALL__EMBEDDINGS", "remote"),
        ("RECALL__EMBEDDINGS_URL", "http://example.com/v1"),
    ],
)
def test_a_bad_value_is_refused_under_the_name_of_its_setting(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(f"XIAOBAI_{variable}", value)
    message = refusal().message
    assert f"XIAOBAI_{variable}" in message
    assert len(value) < 4 or value not in message


def test_an_embeddings_api_needs_address_and_model_and_its_key_is_no_setting(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XIAOBAI_RECALL__EMBEDDINGS", "api")
    assert "XIAOBAI_RECALL__EMBEDDINGS_URL" in refusal().message
    monkeypatch.setenv("XIAOBAI_RECALL__EMBEDDINGS_URL", "https://example.com/v1/")
    assert "XIAOBAI_RECALL__EMBEDDINGS_MODEL" in refusal().message
    monkeypatch.setenv("XIAOBAI_RECALL__EMBEDDINGS_MODEL", "small")
    monkeypatch.setenv("XIAOBAI_EMBEDDINGS_KEY", SECRET)
    assert Settings.from_sources().recall.embeddings_url == "https://example.com/v1"
    assert read_embeddings_key(os.environ) == SECRET
    assert SECRET not in str(Settings.from_sources().to_display())
    monkeypatch.delenv("XIAOBAI_EMBEDDINGS_KEY")
    write_config(home, f'embeddings_key = "{SECRET}"')
    assert "embeddings_key" in refusal().message


def test_a_table_as_json_in_one_variable_is_checked_like_the_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XIAOBAI_SYNC", '{"poll_seconds": 4}')
    assert Settings.from_sources().sync.poll_seconds == 4
    monkeypatch.setenv("XIAOBAI_SYNC", '{"pol_seconds": 4}')
    assert "sync.pol_seconds" in refusal().message


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "ftp://example.com",
        "example.com",
        "https://",
        "",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://127.0.0.1@example.com",
        "http://localhost:pw@example.com",
        "https:///x",
        "https://abc.supabase.co:99999",
        "https://abc.supabase.co:abc",
        "https://abc.supabase.co:0",
    ],
)
def test_the_address_is_https_unless_it_is_this_machine(home: Path, url: str) -> None:
    assert "XIAOBAI_SUPABASE_URL" in refusal(supabase_url=url, supabase_key=KEY).message


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://abc.supabase.co/", "https://abc.supabase.co"),
        ("http://127.0.0.1:54321", "http://127.0.0.1:54321"),
        ("http://localhost:54321/", "http://localhost:54321"),
        ("http://[::1]:54321", "http://[::1]:54321"),
    ],
)
def test_an_address_is_kept_without_its_slash(home: Path, url: str, kept: str) -> None:
    settings = Settings.from_sources(supabase_url=url, supabase_key=KEY)
    assert settings.supabase_url == kept
    assert settings.supabase_key == SecretStr(KEY)


@pytest.mark.parametrize(("url", "key"), [("https://abc.supabase.co", None), (None, KEY)])
def test_address_and_key_go_together_and_the_missing_one_is_named(home: Path, url: str | None, key: str | None) -> None:
    missing = "XIAOBAI_SUPABASE_KEY" if key is None else "XIAOBAI_SUPABASE_URL"
    assert missing in refusal(supabase_url=url, supabase_key=key).message


@pytest.mark.parametrize("key", [SECRET, f" {SECRET}\n", jwt("service_role"), jwt("supabase_admin")])
def test_a_service_key_is_refused_without_being_shown(home: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("XIAOBAI_SUPABASE_URL", "https://abc.supabase.co")
    monkeypatch.setenv("XIAOBAI_SUPABASE_KEY", key)
    error = refusal()
    assert isinstance(error, ServiceKeyRefused)
    assert "XIAOBAI_SUPABASE_KEY" in error.message
    assert key.strip() not in error.message + error.hint


@pytest.mark.parametrize("key", [KEY, jwt("anon"), "a.b.c", "钥匙", "..", f"{KEY}.x.y"])
def test_other_keys_are_no_service_keys(key: str) -> None:
    assert not is_service_key(key)


def test_a_key_never_shows_in_what_a_settings_object_prints(home: Path) -> None:
    settings = Settings.from_sources(supabase_url="https://abc.supabase.co", supabase_key=KEY)
    assert KEY not in repr(settings) + str(settings) + str(settings.to_display())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"https://me:{SECRET}@example.com:8443/v1", "https://**********@example.com:8443/v1"),
        (f"https://{SECRET}@example.com", "https://**********@example.com"),
        (f"https://me:p@{SECRET}@[2001:db8::1]/v1?of=@b", "https://**********@[2001:db8::1]/v1?of=@b"),
        ("https://example.com/@me/v1", "https://example.com/@me/v1"),
    ],
)
def test_what_opens_an_address_is_used_and_never_shown(home: Path, url: str, shown: str) -> None:
    settings = Settings.from_sources(supabase_url=url, supabase_key=KEY, recall={"embeddings_url": url})
    assert (settings.supabase_url, settings.recall.embeddings_url) == (url, url)
    told = settings.to_display()
    assert (told["supabase_url"], told["recall"]["embeddings_url"]) == (shown, shown)


def test_an_archive_gets_neither_the_key_nor_the_patterns_of_the_redaction(home: Path) -> None:
    settings = Settings.from_sources(
        supabase_url="https://example.com", supabase_key=KEY, redaction={"patterns": [SECRET]}
    )
    archived = settings.to_archive()
    assert (archived["supabase_key"], archived["redaction"]["patterns"]) == (None, 1)
    assert SECRET not in str(archived)


@pytest.mark.parametrize(
    "text", [f"supabase_key = {KEY}\n", f"supabase_key = '{KEY}\n", f"[supabase_key]\nx = '{KEY}'"]
)
def test_a_file_that_cannot_be_understood_is_named_and_its_key_is_not_shown(home: Path, text: str) -> None:
    write_config(home, text)
    message = refusal().message
    assert "config.toml" in message or "SUPABASE_KEY" in message


def test_a_file_in_another_encoding_is_named(home: Path) -> None:
    (home / "data" / "config.toml").write_bytes('device_name = "书房"\n'.encode("gbk"))
    assert "config.toml" in refusal().message


def test_a_file_that_is_nested_without_end_is_named(home: Path) -> None:
    write_config(home, "device_name = " + "[" * 100_000)
    assert "config.toml" in refusal().message


@pytest.mark.skipif(sys.platform == "win32", reason="a file system with named pipes")
def test_a_pipe_in_its_place_is_named_without_waiting_for_it(home: Path) -> None:
    os.mkfifo(home / "data" / "config.toml")
    assert "no ordinary file" in refusal().message


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX owners")
@pytest.mark.parametrize("place", ["data", "data/config.toml"])
def test_a_folder_or_file_of_another_user_decides_nothing(
    home: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config(home, "device_name = '书房'")
    if os.getuid() == 0:
        os.chown(home / place, 12_345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12_345)
    refused = refusal()
    assert "belongs to another user" in refused.message
    assert "chown" in str(refused.hint)


def test_a_file_that_begins_with_a_byte_order_mark_is_read(home: Path) -> None:
    write_config(home, '\ufeffdevice_name = "书房"\n')
    assert Settings.from_sources().device_name == "书房"


def test_settings_cannot_be_changed_afterwards(home: Path) -> None:
    settings = Settings.from_sources()
    with pytest.raises(AttributeError, match="immutable"):
        settings.device_name = "another"  # type: ignore[misc]


def test_paths_become_absolute_and_a_link_stays_a_link(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "real.md").touch()
    (home / "link.md").symlink_to(home / "real.md")
    monkeypatch.chdir(home)
    assert Settings.from_sources(memory_file="link.md").memory_file == home / "link.md"
    assert Settings.from_sources(memory_file="~/a/../b.md").memory_file == home / "b.md"
