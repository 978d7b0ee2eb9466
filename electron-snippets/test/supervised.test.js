'use strict';

/** The supervisor: on the real sidecar if possible, on fakes and a fake clock if the real one cannot misbehave. */

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { SidecarSupervisor } = require('../supervisor.js');
const { SidecarError, findSidecar } = require('../client.js');
const { COMMAND, fake, isAlive, makeHome, next, reaches, rejection, within } = require('./support/world.js');

function supervised(t, options) {
  const supervisor = new SidecarSupervisor(options);
  t.after(() => supervisor.stop());
  return supervisor;
}

/** Time that passes only when a test says so. `fire` runs the timer that is due first. */
function toldTime() {
  const timers = new Set();
  const time = {
    clock: 0,
    random: () => 1,
    now: () => time.clock,
    setTimeout: (callback, ms) => {
      const timer = { callback, due: time.clock + ms, ms };
      timers.add(timer);
      return timer;
    },
    clearTimeout: (timer) => timers.delete(timer),
    fire: () => {
      const [timer] = [...timers].sort((one, other) => one.due - other.due);
      timers.delete(timer);
      time.clock = timer.due;
      timer.callback();
      return timer.ms;
    },
  };
  return time;
}

/** Crash until the supervisor gives up; the delays before every restart. */
async function delaysUntilTemplate(supervisor, time) {
  const delays = [];
  while (supervisor.state !== 'template') {
    if (supervisor.state === 'waiting') delays.push(time.fire());
    await next(supervisor, 'state', ({ state }) => state === 'waiting' || state === 'template');
  }
  return delays;
}

test('start answers how the sidecar stands, and it works', async (t) => {
  const supervisor = supervised(t, { command: COMMAND, env: makeHome().env });
  const { state, server, message } = await within(supervisor.start(), 'start');
  assert.deepEqual([state, server.name, server.protocolVersion], ['running', 'xiaobai-memory', 1]);
  assert.equal(message, '记忆服务运行正常');
  const changed = next(supervisor, 'notification', ({ method }) => method === 'memory/changed');
  await supervisor.request('memory/update', { userMessage: '问', aiResponse: '答' });
  assert.equal(typeof (await changed).params.nextOffset, 'number');
});

test('a sidecar killed in the middle of a call rejects it and is replaced, and nothing is lost', async (t) => {
  const supervisor = supervised(t, { command: COMMAND, env: makeHome().env });
  await within(supervisor.start(), 'start');
  await supervisor.request('memory/update', { userMessage: '中断之前', aiResponse: '答' });
  const { pid } = supervisor._client;
  process.kill(pid, 'SIGSTOP');
  const call = supervisor.request('sync/status');
  process.kill(pid, 'SIGKILL');
  assert.equal((await rejection(call)).kind, 'sidecar_exited');
  const waiting = await reaches(supervisor, 'waiting');
  assert.equal(waiting.error.kind, 'sidecar_exited');
  assert.ok(waiting.retryInMs >= 125 && waiting.retryInMs <= 250);
  const { content } = await within(supervisor.request('memory/load', { waitMs: 0 }), 'a load that waits for the restart');
  assert.match(content, /中断之前/);
  assert.equal(supervisor.snapshot.restarts, 1);
  assert.equal(isAlive(pid), false);
});

test('a load before the handshake is answered', async (t) => {
  const supervisor = supervised(t, { command: COMMAND, env: makeHome().env });
  const started = supervisor.start();
  const load = await within(supervisor.request('memory/load', { waitMs: 0 }, { early: true }), 'the load');
  assert.equal(load.source, 'template');
  await started;
});

test('a crash loop ends in template mode after five restarts, and retry begins anew', async (t) => {
  const time = toldTime();
  const supervisor = supervised(t, { command: fake('crash'), time });
  const done = supervisor.start();
  assert.deepEqual(await within(delaysUntilTemplate(supervisor, time), 'template mode'), [250, 500, 1000, 2000, 4000]);
  const { state, message, error } = await done;
  assert.equal(state, 'template');
  assert.match(message, /对话可以照常进行/);
  assert.match(error.message, /it cannot start/);
  assert.equal(error.hint, 'Do something about it.');
  const refused = await rejection(supervisor.request('memory/load'));
  assert.deepEqual([refused.kind, refused.hint], ['not_running', 'Do something about it.']);
  const again = supervisor.retry();
  assert.deepEqual(await within(delaysUntilTemplate(supervisor, time), 'template mode again'), [250, 500, 1000, 2000, 4000]);
  assert.equal((await again).state, 'template');
});

test('crashes far apart never end in template mode; the delay grows to thirty seconds', async (t) => {
  const time = toldTime();
  const supervisor = supervised(t, { command: fake('dies'), time });
  await within(supervisor.start(), 'start');
  const delays = [];
  for (let crash = 0; crash < 10; crash += 1) {
    time.clock += 40_000; // longer than a fifth of the window, shorter than a stable run
    supervisor.request('x');
    const { retryInMs } = await reaches(supervisor, 'waiting');
    delays.push(retryInMs);
    time.fire();
    await reaches(supervisor, 'running');
  }
  assert.deepEqual(delays, [250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
  time.clock += 60_000;
  supervisor.request('x');
  assert.equal((await reaches(supervisor, 'waiting')).retryInMs, 250);
});

test('another version of the protocol is template mode at once, and says what to do', async (t) => {
  const supervisor = supervised(t, { command: fake('version', '2') });
  const { state, message, error, restarts } = await within(supervisor.start(), 'start');
  assert.deepEqual([state, error.kind, restarts], ['template', 'version_mismatch', 0]);
  assert.match(error.message, /protocol 1, xiaobai-memory 9\.8\.7 speaks protocol 2/);
  assert.match(message, /版本不匹配/);
});

test('a missing program is template mode at once; it may be installed before a retry', async (t) => {
  const setting = '/no/such/xiaobai-memory';
  let find = () => findSidecar({ setting });
  const supervisor = supervised(t, { find: () => find() });
  const { state, error } = await within(supervisor.start(), 'start');
  assert.deepEqual([state, error.kind], ['template', 'sidecar_not_found']);
  assert.match(error.message, /\/no\/such\/xiaobai-memory/);
  find = () => fake('echo');
  assert.equal((await within(supervisor.retry(), 'retry')).state, 'running');
});

test('a sidecar that no longer answers is replaced after two missed health calls', async (t) => {
  const time = toldTime();
  const supervisor = supervised(t, { command: fake('mute'), time, policy: { healthTimeoutMs: 20 } });
  await within(supervisor.start(), 'start');
  const first = supervisor._client;
  assert.equal(time.fire(), 30_000);
  await next(first, 'test/cancelled');
  assert.equal(supervisor.state, 'running');
  await new Promise(setImmediate);
  time.fire();
  const { error } = await reaches(supervisor, 'waiting');
  assert.equal(error.kind, 'timeout');
  time.fire();
  await reaches(supervisor, 'running');
  assert.notEqual(supervisor._client.pid, first.pid);
  assert.equal(isAlive(first.pid), false);
});

test('a health call that fails is a sign of life', async (t) => {
  const time = toldTime();
  const asked = [];
  const createClient = () => ({
    state: 'running',
    on: () => {},
    once: () => {},
    start: async () => {},
    handshake: async () => ({ protocolVersion: 1, serverInfo: {} }),
    close: async () => {},
    request: async (method) => {
      asked.push(method);
      throw new SidecarError('storage_full', 'the disk is full');
    },
  });
  const supervisor = supervised(t, { command: ['x'], time, createClient });
  await within(supervisor.start(), 'start');
  for (let look = 0; look < 5; look += 1) {
    time.fire();
    await new Promise(setImmediate);
  }
  assert.deepEqual([supervisor.state, asked.length], ['running', 5]);
});

test('stop leaves no process, and start works again after it', async (t) => {
  const supervisor = supervised(t, { command: COMMAND, env: makeHome().env });
  await within(supervisor.start(), 'start');
  const { pid } = supervisor._client;
  await within(supervisor.stop(), 'stop');
  assert.deepEqual([supervisor.state, isAlive(pid)], ['stopped', false]);
  assert.equal((await rejection(supervisor.request('memory/load'))).kind, 'not_running');
  assert.equal((await within(supervisor.start(), 'start')).state, 'running');
});

test('stop during the start ends it', async (t) => {
  const supervisor = supervised(t, { command: COMMAND, env: makeHome().env });
  const starting = supervisor.start();
  await within(supervisor.stop(), 'stop');
  assert.equal((await within(starting, 'start')).state, 'stopped');
});
