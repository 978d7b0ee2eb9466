'use strict';

/** The programs the tests talk to: the real sidecar, the echo sidecar of the Python tests, and a fake that misbehaves. */

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const ROOT = path.resolve(__dirname, '..', '..');
const BIN = path.join(ROOT, '.venv', process.platform === 'win32' ? 'Scripts' : 'bin');

/** The real sidecar: XIAOBAI_MEMORY_COMMAND (a JSON array), else the one of this checkout. */
function sidecar() {
  const given = process.env.XIAOBAI_MEMORY_COMMAND;
  return given ? JSON.parse(given) : [path.join(BIN, 'xiaobai-memory'), 'serve'];
}

/** The real transport around methods that echo, wait and fail. Start it with `cwd: ROOT`. */
function echo(...args) {
  return [path.join(BIN, 'python'), '-m', 'tests.integration.rpc_echo', ...args];
}

/** A sidecar that misbehaves as its arguments say. */
function fake(...args) {
  return [process.execPath, path.join(__dirname, 'fake-sidecar.js'), ...args];
}

/** Arguments for execFileSync that print the OpenRPC document. */
function openrpc() {
  const [program, ...args] = sidecar();
  return [program, [...args, '--openrpc']];
}

/** An environment in which the real sidecar touches nothing of this machine, and how to remove it. */
function temporaryHome() {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'xiaobai-electron-'));
  const data = path.join(home, 'data');
  const file = path.join(home, 'xiaobai-ai-memory.md');
  return {
    file,
    env: {
      HOME: home,
      USERPROFILE: home,
      XIAOBAI_DATA_DIR: data,
      XIAOBAI_MEMORY_FILE: file,
      XIAOBAI_SUPABASE_URL: undefined,
      XIAOBAI_SUPABASE_KEY: undefined,
      XIAOBAI_APP_DB: undefined,
    },
    remove: () => fs.rmSync(home, { recursive: true, force: true, maxRetries: 5 }),
  };
}

module.exports = { ROOT, echo, fake, openrpc, sidecar, temporaryHome };
