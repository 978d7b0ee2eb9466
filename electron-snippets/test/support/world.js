'use strict';

/** A real sidecar with a temporary home, fakes for what the real one does not do on demand, and bounded waits. */

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { once } = require('node:events');
const { setTimeout: wait } = require('node:timers/promises');

const WITHIN_MS = 60_000; // a bound for a broken program, not a time anybody expects
const LOOK_MS = 20;
const UNHURRIED = { loadMs: WITHIN_MS, updateMs: WITHIN_MS, patienceMs: WITHIN_MS }; // limits of a memory, for a busy machine

const installed = path.join(__dirname, '..', '..', '..', '.venv', process.platform === 'win32' ? 'Scripts' : 'bin', 'xiaobai-memory');
const COMMAND = process.env.SIDECAR_COMMAND ? JSON.parse(process.env.SIDECAR_COMMAND) : [installed, 'serve'];
const FAKE = path.join(__dirname, 'fake.js');

const homes = [];
process.on('exit', () => {
  for (const folder of homes) fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** A home of its own, removed when every sidecar has left. Settings of the person who runs the tests are not seen. */
function makeHome() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'xiaobai-'));
  homes.push(folder);
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('XIAOBAI_'));
  const env = {
    ...Object.fromEntries(kept),
    HOME: folder,
    XIAOBAI_DATA_DIR: path.join(folder, 'data'),
    XIAOBAI_MEMORY_FILE: path.join(folder, 'memory.md'),
    XIAOBAI_TOKEN_STORE: 'file',
    XIAOBAI_LAN__ENABLED: 'off',
    XIAOBAI_RECALL__EMBEDDINGS: 'off', // no test needs the models, which take seconds to load
  };
  return { folder, env, file: env.XIAOBAI_MEMORY_FILE };
}

/** The command of a fake sidecar that behaves as `mode` says. */
const fake = (mode, ...args) => [process.execPath, FAKE, mode, ...args];

/** A promise, but with an end. */
async function within(promise, what, ms = WITHIN_MS) {
  const controller = new AbortController();
  const late = wait(ms, undefined, { signal: controller.signal }).then(() => {
    throw new Error(`not within ${ms} ms: ${what}`);
  });
  late.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } finally {
    controller.abort();
  }
}

/** The arguments of the next event that fits. */
function next(emitter, event, fits = () => true) {
  const found = (async () => {
    for (;;) {
      const [value] = await once(emitter, event);
      if (fits(value)) return value;
    }
  })();
  return within(found, event);
}

/** Resolves when the supervisor is in a state. */
const reaches = (supervisor, state) =>
  supervisor.state === state ? Promise.resolve(supervisor.snapshot) : next(supervisor, 'state', (snapshot) => snapshot.state === state);

/** Resolves when `reached()` says so. */
async function until(reached, what, ms = WITHIN_MS) {
  const end = performance.now() + ms;
  while (!(await reached())) {
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await wait(LOOK_MS);
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    // A zombie process still has its id.
    return !/^\d+ \(.*\) Z/s.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return process.platform !== 'linux';
  }
}

/** Resolves when a process that is not our child has ended; only looking again can tell. */
async function gone(pid, ms = 6_000) {
  const until = performance.now() + ms;
  while (isAlive(pid)) {
    if (performance.now() > until) throw new Error(`process ${pid} still runs after ${ms} ms`);
    await wait(LOOK_MS);
  }
}

/** What a promise rejects with. */
const rejection = (promise) => within(promise.then((value) => { throw new Error(`resolved with ${JSON.stringify(value)}`); }, (error) => error), 'a rejection');

module.exports = { COMMAND, FAKE, UNHURRIED, WITHIN_MS, fake, gone, isAlive, makeHome, next, reaches, rejection, until, within };
