'use strict';

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const { test } = require('node:test');

const { SidecarError } = require('../client.js');
const { registerMemory, stopBeforeQuit } = require('../main-ipc.js');
const { METHODS, PREFIX, createApi } = require('../preload.js');

/** Electron's two ends of IPC in one object, copying as structured clone does. */
class Ipc extends EventEmitter {
  constructor(url = 'file:///app/index.html') {
    super();
    this.handlers = new Map();
    this.url = url;
    this.page = { isDestroyed: () => false, send: (channel, ...args) => this.emit(channel, { sender: 'secret' }, ...args) };
  }

  handle(channel, handler) {
    this.handlers.set(channel, handler);
  }

  removeHandler(channel) {
    this.handlers.delete(channel);
  }

  async invoke(channel, params) {
    const handler = this.handlers.get(channel);
    if (!handler) throw new Error(`No handler registered for '${channel}'`);
    return structuredClone(await handler({ senderFrame: { url: this.url } }, params && structuredClone(params)));
  }
}

class Supervisor extends EventEmitter {
  state = { phase: 'ready', template: false };
  retried = 0;

  async call(method, params) {
    if (method === 'sync/now') throw new SidecarError('no network', { code: -32031, kind: 'cloud_unavailable', retryable: true });
    return { method, params };
  }

  retry() {
    this.retried += 1;
  }
}

function wired(options = {}) {
  const ipc = new Ipc(options.url);
  const supervisor = new Supervisor();
  const undo = registerMemory({ ipcMain: ipc, supervisor, pages: () => [ipc.page], ...options });
  return { ipc, supervisor, undo, api: createApi(ipc) };
}

test('a page calls listed methods and gets results', async () => {
  const { api } = wired();
  for (const method of METHODS.filter((name) => name !== 'sync/now')) {
    assert.deepEqual(await api.call(method, { a: 1 }), { ok: true, result: { method, params: { a: 1 } } });
  }
});

test('an error keeps its kind on the way to the page', async () => {
  const answer = await wired().api.call('sync/now');
  assert.equal(answer.ok, false);
  assert.deepEqual([answer.error.kind, answer.error.retryable], ['cloud_unavailable', true]);
});

test('a page cannot reach anything that is not listed', async () => {
  const { api, ipc } = wired();
  for (const method of ['shutdown', 'auth/setSession', 'events/append', 'constructor', '__proto__', 'xiaobai-memory:state', '']) {
    assert.equal((await api.call(method)).error.kind, 'refused');
    await assert.rejects(ipc.invoke(PREFIX + method), /No handler/);
  }
});

test('the page sees neither ipcRenderer nor events', async () => {
  const { api, supervisor } = wired();
  assert.deepEqual(Object.keys(api).sort(), ['call', 'on', 'retry', 'state']);
  const seen = [];
  api.on('memory/changed', (...args) => seen.push(args));
  supervisor.emit('notification', 'memory/changed', { throughSeq: 1 });
  assert.deepEqual(seen, [[{ throughSeq: 1 }]]);
});

test('only listed notifications reach the page, and a subscription can be ended', async () => {
  const { api, supervisor } = wired();
  const seen = [];
  const end = api.on('state', (state) => seen.push(state.phase));
  api.on('auth/tokenNeeded', () => seen.push('leaked'));
  supervisor.emit('notification', 'auth/tokenNeeded', {});
  supervisor.emit('state', { phase: 'template' });
  end();
  supervisor.emit('state', { phase: 'ready' });
  assert.deepEqual(seen, ['template']);
});

test('the page asks for the state and for another try', async () => {
  const { api, supervisor } = wired();
  assert.deepEqual(await api.state(), { ok: true, result: { phase: 'ready', template: false } });
  await api.retry();
  assert.equal(supervisor.retried, 1);
});

test('a page that is not trusted is refused', async () => {
  const { api } = wired({ url: 'https://evil.example/' });
  assert.equal((await api.call('memory/load')).error.kind, 'refused');
  const own = wired({ url: 'http://localhost:5173/', trusts: (url) => url.startsWith('http://localhost:5173/') });
  assert.equal((await own.api.call('memory/load')).ok, true);
});

test('windows that are gone are left alone, and everything can be taken back', async () => {
  const { ipc, supervisor, undo, api } = wired();
  ipc.page.isDestroyed = () => true;
  ipc.page.send = () => assert.fail('sent to a destroyed page');
  supervisor.emit('state', {});
  undo();
  assert.equal(ipc.handlers.size, 0);
  assert.equal(supervisor.listenerCount('state'), 0);
  await assert.rejects(api.call('memory/load'));
});

test('quitting waits once for the sidecar, also if stopping fails', async () => {
  for (const outcome of [Promise.resolve(), Promise.reject(new Error('x'))]) {
    const app = Object.assign(new EventEmitter(), { quits: 0, quit: () => (app.quits += 1) });
    stopBeforeQuit(app, { stop: () => outcome });
    let prevented = 0;
    const event = { preventDefault: () => (prevented += 1) };
    app.emit('will-quit', event);
    await new Promise(setImmediate);
    assert.equal(app.quits, 1);
    app.emit('will-quit', event);
    assert.equal(prevented, 1);
  }
});
