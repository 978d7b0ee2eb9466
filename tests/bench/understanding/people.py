"""What the model of ten invented people is given: `python -m tests.bench.understanding.people [ID…]`.

Plays two weeks of each person in `tests/data/people` through the Node client and a real sidecar, whose clock is moved
from day to day, and prints what a careful person would remember (`keep`), the facts, the system prompt, and the turn
block of each `later` message, and whether vectors were compared. A reader marks each line. Needs `node`.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from tests.sidecar import REPOSITORY, Home

DAY_0: Final = date(2026, 11, 2)
SIDECAR: Final = """
import datetime, os, sys, sync.clock
from bridge.cli.main import main
real = datetime.datetime
class Shifted(real):
    @classmethod
    def now(cls, tz=None):
        with open(os.environ["PEOPLE_DAYS"]) as days: return real.now(tz) + datetime.timedelta(days=int(days.read()))
sync.clock.datetime = Shifted
sys.argv[:] = ["xiaobai-memory", "serve"]
sys.exit(main())
"""
PLAYER: Final = """
const fs = require('node:fs'), { SidecarClient } = require('./electron-snippets/client.js');
const { person, first, file, command, env } = JSON.parse(fs.readFileSync(0, 'utf8'));
const day = (n) => { fs.writeFileSync(file + '.new', String(first + n)); fs.renameSync(file + '.new', file); };
(async () => {
  const client = new SidecarClient({ command, env }, day(0));
  await client.start({ handshake: { locale: person.lang === 'zh' ? 'zh-CN' : 'en-GB' } });
  for (const { day: n, user, answer } of person.exchanges)
    await client.request('memory/update', { userMessage: user, aiResponse: answer, sessionId: `day-${n}` }, day(n));
  const seen = async () => (await client.request('recall/search', { query: person.later[0] })).semantic;
  for (let n = 0; n < 240 && /pending|partial/.test(await seen()); n++) await new Promise((f) => setTimeout(f, 500));
  day(14);
  const { facts } = await client.request('understanding/facts', { status: 'all' }), given = [], semantic = await seen();
  for (const [n, query] of person.later.entries()) {
    const { prompt } = await client.request('memory/systemPrompt', { sessionId: `later-${n}`, waitMs: 0 });
    const { context } = await client.request('recall/context', { query, sessionId: `later-${n}` });
    given.push({ query, prompt, context });
  }
  await client.close();
  console.log(JSON.stringify({ facts, given, semantic }));
})().catch((error) => { console.error(error); process.exit(1); });
"""


def play(person: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The facts of a person after two weeks, and for each later message what its model is given."""
    file, first = str(folder / "days"), (DAY_0 - datetime.now(UTC).date()).days
    env = Home(folder, RECALL__EMBEDDINGS="auto").environment | {"PEOPLE_DAYS": file, "PYTHONPATH": str(REPOSITORY)}
    asked = {"person": person, "first": first, "file": file, "env": env}
    told = json.dumps(asked | {"command": [sys.executable, "-B", "-c", SIDECAR]}).encode()
    return dict(json.loads(subprocess.check_output(["node", "-e", PLAYER], input=told, cwd=REPOSITORY)))


def main(ids: Sequence[str]) -> None:
    texts = [file.read_text("utf-8") for file in sorted((REPOSITORY / "tests/data/people").glob("*.jsonl"))]
    people = map(json.loads, "".join(texts).splitlines())
    for person in (one for one in people if not ids or one["id"] in ids):
        with tempfile.TemporaryDirectory(prefix="people-") as name:
            told = play(person, Path(name))
        print(f"\n===== {person['id']} (vectors: {told['semantic']})", *person["keep"], sep="\n  = ")
        for fact in told["facts"]:
            print(*(fact[name] for name in ("status", "about", "slot", "validFrom", "statement", "questionedBy")))
        print("--- system prompt", told["given"][0]["prompt"], sep="\n")
        for given in told["given"]:
            print(f"--- {given['query']}", given["context"] or "(nothing)", sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
