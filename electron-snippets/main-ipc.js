'use strict';

/**
 * The memory for the renderer, in the main process: a fixed list of channels, each with the parameters it lets through.
 *
 * What the electron modules provide is injected, so that this file runs (and is tested) without Electron. Answers are
 * `{ ok: true, value }` or `{ ok: false, error: { code, kind, message, hint, retryable } }`, because Electron keeps only
 * the text of an error that crosses a process. Recording an exchange is not offered: the agent does that in the main
 * process, and a page that was taken over must not be able to write memories. For the same reason a page can confirm, reject
 * and retract facts, and not edit them.
 */

const { SidecarError } = require('./errors.js');
const { atMost } = require('./waiting.js');

const PREFIX = 'xiaobai-memory:';

/** Asked by the renderer. Must agree with preload.js, which cannot import this file in a sandbox; a test compares them. */
const CALLS = Object.freeze({
  state: { run: ({ supervisor }) => supervisor.snapshot },
  retry: { run: ({ supervisor }) => supervisor.retry() },
  load: { method: 'memory/load', params: { scope: 'string', maxChars: 'number', waitMs: 'number' } },
  status: { method: 'sync/status' },
  sync: { method: 'sync/now', params: { timeoutMs: 'number' }, timeoutMs: 0 }, // the sidecar bounds it by its own timeoutMs
  account: { method: 'auth/status' },
  sendCode: { method: 'auth/start', params: { phone: 'string', email: 'string' } },
  verifyCode: { method: 'auth/verify', params: { phone: 'string', email: 'string', code: 'string' } },
  login: { method: 'auth/password', params: { phone: 'string', email: 'string', password: 'string' } },
  logout: { method: 'auth/logout' },
  facts: { method: 'understanding/facts', params: { status: 'string', project: 'string', query: 'string', limit: 'number' } },
  reviewFacts: { method: 'understanding/review', params: { limit: 'number' } },
  explainFact: { method: 'understanding/explain', params: { factId: 'string' } },
  confirmFact: { method: 'understanding/confirm', params: { factId: 'string' } },
  rejectFact: { method: 'understanding/reject', params: { factId: 'string' } },
  retractFact: { method: 'understanding/retract', params: { factId: 'string' } },
});

/** Told to the renderer: channel -> notification of the sidecar. */
const EVENTS = Object.freeze({
  changed: 'memory/changed',
  'sync-changed': 'sync/statusChanged',
  progress: '$/progress',
  'auth-changed': 'auth/changed',
  'token-needed': 'auth/tokenNeeded',
});
const STATE_EVENT = 'state-changed';

/**
 * @param {object} options
 * @param {Electron.IpcMain} options.ipcMain
 * @param {import('./supervisor.js').SidecarSupervisor} options.supervisor
 * @param {() => Electron.BrowserWindow[]} options.getWindows usually `() => BrowserWindow.getAllWindows()`
 * @param {string[]} [options.allowedOrigins] pages that may ask: 'file://' for packaged pages, 'app://main' for a protocol of
 *   your own, 'http://localhost:5173' for a development server
 * @returns {() => void} takes everything away again
 */
function registerMemoryIpc({ ipcMain, supervisor, getWindows, allowedOrigins = ['file://'] }) {
  for (const [name, call] of Object.entries(CALLS)) {
    ipcMain.handle(PREFIX + name, async (event, given) => {
      try {
        if (!isTrusted(event, allowedOrigins)) throw new SidecarError('forbidden', 'this page may not use the memory');
        return { ok: true, value: await answer(call, supervisor, picked(name, call.params, given)) };
      } catch (error) {
        return { ok: false, error: told(error) };
      }
    });
  }
  const send = (name, payload) => {
    for (const window of getWindows()) {
      const contents = window.isDestroyed() ? undefined : window.webContents;
      if (contents && originIn(contents.getURL(), allowedOrigins)) contents.send(PREFIX + name, payload);
    }
  };
  const onState = (snapshot) => send(STATE_EVENT, snapshot);
  const onNotification = ({ method, params }) => {
    const name = Object.keys(EVENTS).find((key) => EVENTS[key] === method);
    if (name) send(name, params);
  };
  supervisor.on('state', onState);
  supervisor.on('notification', onNotification);
  return () => {
    for (const name of Object.keys(CALLS)) ipcMain.removeHandler(PREFIX + name);
    supervisor.off('state', onState);
    supervisor.off('notification', onNotification);
  };
}

/**
 * End the sidecar before the app quits: every 'will-quit' is held back until the updates that wait are sent (at most
 * `flushMs`) and the sidecar has left (at most about four seconds), then the app quits as it wanted to.
 */
function stopBeforeQuit({ app, supervisor, memory, flushMs = 2_000 }) {
  let stopping = false;
  let done = false;
  app.on('will-quit', (event) => {
    if (done) return;
    event.preventDefault(); // also a second, impatient one
    if (stopping) return;
    stopping = true;
    Promise.resolve(memory?.queued ? atMost(flushMs, memory.flush()) : undefined)
      .then(() => supervisor.stop())
      .catch(() => {})
      .then(() => {
        done = true;
        app.quit();
      });
  });
}

function answer(call, supervisor, params) {
  return call.run ? call.run({ supervisor }) : supervisor.request(call.method, params, { timeoutMs: call.timeoutMs });
}

/** Only the named parameters, each of its type: what a page sends is not passed on as it is. */
function picked(name, allowed = {}, given = undefined) {
  const params = {};
  for (const [key, value] of Object.entries(given ?? {})) {
    if (value === undefined) continue;
    if (!Object.hasOwn(allowed, key) || typeof value !== allowed[key]) {
      throw new SidecarError('invalid_input', `${name}: ${key} is not a parameter, or not of its type`, { field: key });
    }
    params[key] = value;
  }
  return params;
}

/** Only the top frame of a page of ours: not an iframe, not a page the window was navigated to. */
function isTrusted(event, allowedOrigins) {
  const frame = event.senderFrame;
  return Boolean(frame) && frame === event.sender.mainFrame && originIn(frame.url, allowedOrigins);
}

function originIn(url, allowedOrigins) {
  try {
    const { protocol, host } = new URL(url); // `origin` is "null" for file: and protocols of one's own
    return allowedOrigins.includes(`${protocol}//${host}`);
  } catch {
    return false;
  }
}

function told(error) {
  if (error instanceof SidecarError) return error.toJSON();
  return new SidecarError('internal', 'the memory could not answer').toJSON();
}

module.exports = { registerMemoryIpc, stopBeforeQuit, PREFIX, CALLS, EVENTS, STATE_EVENT };
