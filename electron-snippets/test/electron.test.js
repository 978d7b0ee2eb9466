'use strict';

/** Main process and preload, connected by a fake of Electron's IPC. */

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');
const { EventEmitter } = require('node:events');
const { test } = require('node:test');
const ipc = require('../main-ipc.js');
const { SidecarError } = require('../client.js');

const PAGE = 'file:///app/index.html';

/** A window whose page is at `url`; what is sent to it arrives at its `ipcRenderer`. */
function makeWindow(url, handlers) {
  const ipcRenderer = new EventEmitter();
  const mainFrame = { url };
  const contents = {
    mainFrame,
    getURL: () => url,
    send: (channel, payload) => ipcRenderer.emit(channel, { sender: ipcRenderer }, structuredClone(payload)),
  };
  ipcRenderer.invoke = async (channel, params, frame = mainFrame) => {
    if (!handlers.has(channel)) throw new Error(`no handler for ${channel}`);
    return structuredClone(await handlers.get(channel)({ sender: contents, senderFrame: frame }, structuredClone(params)));
  };
  return { isDestroyed: () => false, webContents: contents, ipcRenderer };
}

/** A preload as a sandbox runs it: `require` knows electron and nothing else. */
function runPreload(ipcRenderer) {
  const exposed = {};
  const contextBridge = { exposeInMainWorld: (name, api) => (exposed[name] = api) };
  const sandboxed = (name) => {
    assert.equal(name, 'electron', 'a sandboxed preload can import only electron');
    return { contextBridge, ipcRenderer };
  };
  const source = fs.readFileSync(path.join(__dirname, '..', 'preload.js'), 'utf8');
  vm.runInThisContext(`(function (require) {${source}\n})`)(sandboxed);
  return exposed;
}

function app({ url = PAGE, request = async () => ({}), allowedOrigins } = {}) {
  const handlers = new Map();
  const ipcMain = { handle: (channel, handler) => handlers.set(channel, handler), removeHandler: (channel) => handlers.delete(channel) };
  const supervisor = Object.assign(new EventEmitter(), { snapshot: { state: 'running' }, retry: async () => ({ state: 'starting' }), request });
  const window = makeWindow(url, handlers);
  const dispose = ipc.registerMemoryIpc({ ipcMain, supervisor, getWindows: () => [window], allowedOrigins });
  return { handlers, supervisor, window, dispose, api: runPreload(window.ipcRenderer).xiaobaiMemory };
}

test('preload and main process name the same channels', (t) => {
  const { api, handlers, window } = app();
  const calls = Object.keys(api).filter((name) => name !== 'on');
  assert.deepEqual(calls.map((name) => ipc.PREFIX + name).sort(), [...handlers.keys()].sort());
  for (const name of [...Object.keys(ipc.EVENTS), ipc.STATE_EVENT]) t.after(api.on(name, () => {}));
  assert.deepEqual(window.ipcRenderer.eventNames().length, Object.keys(ipc.EVENTS).length + 1);
});

test('a page gets functions and nothing of electron', () => {
  const { api, window } = app();
  assert.ok(Object.values(api).every((value) => typeof value === 'function'));
  for (const name of ['invoke', 'send', 'request', 'ipcRenderer', 'update']) assert.equal(api[name], undefined);
  for (const name of ['anything', 'error', 'xiaobai-memory:changed', '__proto__', undefined]) {
    assert.throws(() => api.on(name, () => {}), /there is no event/);
  }
  assert.deepEqual(window.ipcRenderer.eventNames(), []);
});

test('a page calls, and gets results or errors with their members', async () => {
  const asked = [];
  const request = async (method, params) => {
    asked.push([method, params]);
    if (method === 'sync/now') throw new SidecarError('cloud_unavailable', 'no network', { code: -32031, hint: 'Wait.', retryable: true });
    if (method === 'sync/status') throw new TypeError('a path: /home/somebody');
    return { content: '记忆' };
  };
  const { api } = app({ request });
  assert.deepEqual(await api.load({ scope: 'device', maxChars: 100 }), { ok: true, value: { content: '记忆' } });
  assert.deepEqual(asked[0], ['memory/load', { scope: 'device', maxChars: 100 }]);
  const { ok, error } = await api.sync();
  assert.deepEqual([ok, error.kind, error.code, error.hint, error.retryable], [false, 'cloud_unavailable', -32031, 'Wait.', true]);
  assert.doesNotMatch(JSON.stringify(await api.status()), /somebody/);
  assert.deepEqual(await api.state(), { ok: true, value: { state: 'running' } });
  assert.deepEqual(await api.retry(), { ok: true, value: { state: 'starting' } });
});

test('parameters that are not listed or of another type do not get through', async () => {
  let calls = 0;
  const { api } = app({ request: async () => (calls += 1) });
  for (const params of [{ waitMs: '1' }, { path: '/etc/passwd' }, 'text', { scope: { toString: 1 } }]) {
    assert.equal((await api.load(params)).error.kind, 'invalid_input');
  }
  assert.equal(calls, 0);
});

test('only the top frame of an allowed page may ask', async () => {
  const channel = `${ipc.PREFIX}load`;
  for (const url of ['https://evil.example/', 'http://localhost:5173/', 'about:blank', '']) {
    assert.equal((await app({ url }).api.load()).error.kind, 'forbidden', url);
  }
  const { window } = app();
  const { invoke } = window.ipcRenderer;
  assert.equal((await invoke(channel, {}, { url: PAGE })).error.kind, 'forbidden', 'an iframe');
  assert.equal((await invoke(channel, {}, null)).error.kind, 'forbidden', 'a frame that is gone');
  for (const origin of ['http://localhost:5173', 'app://main']) {
    assert.equal((await app({ url: `${origin}/index.html`, allowedOrigins: [origin] }).api.load()).ok, true);
  }
});

test('a page is told of changes, without the event, until it stops listening', () => {
  const { api, supervisor } = app();
  const told = [];
  const stop = api.on('changed', (...args) => told.push(args));
  api.on('state-changed', (...args) => told.push(args));
  supervisor.emit('notification', { method: 'memory/changed', params: { nextOffset: 7 } });
  supervisor.emit('notification', { method: 'no/such', params: {} });
  supervisor.emit('state', { state: 'template' });
  stop();
  supervisor.emit('notification', { method: 'memory/changed', params: { nextOffset: 8 } });
  assert.deepEqual(told, [[{ nextOffset: 7 }], [{ state: 'template' }]]);
});

test('a window at a foreign page is told nothing', () => {
  const { window, supervisor } = app({ url: 'https://evil.example/' });
  let told = 0;
  window.ipcRenderer.on(`${ipc.PREFIX}state-changed`, () => (told += 1));
  supervisor.emit('state', { state: 'running' });
  assert.equal(told, 0);
});

test('what was registered can be taken away', () => {
  const { handlers, supervisor, dispose } = app();
  dispose();
  assert.deepEqual([handlers.size, supervisor.eventNames().length], [0, 0]);
});

test('quitting waits for the sidecar once, and goes on even if stopping fails', async () => {
  for (const stop of [async () => {}, async () => { throw new Error('no'); }]) {
    const quits = [];
    const electronApp = Object.assign(new EventEmitter(), { quit: () => quits.push('quit') });
    const event = { preventDefault: () => quits.push('held') };
    ipc.stopBeforeQuit({ app: electronApp, supervisor: { stop } });
    electronApp.emit('will-quit', event);
    await new Promise(setImmediate);
    electronApp.emit('will-quit', event);
    assert.deepEqual(quits, ['held', 'quit']);
  }
});

test('quitting again while the sidecar leaves does not cut it short', async () => {
  const quits = [];
  const electronApp = Object.assign(new EventEmitter(), { quit: () => quits.push('quit') });
  const event = { preventDefault: () => quits.push('held') };
  let leave;
  const supervisor = { stop: () => new Promise((resolve) => (leave = resolve)) };
  ipc.stopBeforeQuit({ app: electronApp, supervisor, memory: { queued: 1, flush: async () => quits.push('sent') } });
  electronApp.emit('will-quit', event);
  electronApp.emit('will-quit', event);
  await new Promise(setImmediate);
  electronApp.emit('will-quit', event);
  leave();
  await new Promise(setImmediate);
  electronApp.emit('will-quit', event);
  assert.deepEqual(quits, ['held', 'sent', 'held', 'held', 'quit']);
});

test('updates that cannot be sent do not hold up quitting', async () => {
  const quit = new Promise((resolve) => {
    const electronApp = Object.assign(new EventEmitter(), { quit: () => resolve('quit') });
    const memory = { queued: 1, flush: () => new Promise(() => {}) };
    ipc.stopBeforeQuit({ app: electronApp, supervisor: { stop: async () => {} }, memory, flushMs: 1 });
    electronApp.emit('will-quit', { preventDefault: () => {} });
  });
  assert.equal(await quit, 'quit');
});
