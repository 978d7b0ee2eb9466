'use strict';

const assert = require('node:assert/strict');
const { EventEmitter, once } = require('node:events');
const { test } = require('node:test');

const { SidecarSupervisor, backoff } = require('../supervisor.js');
const { SidecarError } = require('../client.js');
const { ROOT, echo, fake } = require('../testing/programs.js');

/** A supervisor on real processes that is stopped with the test. */
function started(t, command, options = {}) {
  const supervisor = new SidecarSupervisor({ command, clientOptions: { cwd: ROOT, stopStepMs: 300 }, ...options });
  t.after(() => supervisor.stop());
  supervisor.start();
  return supervisor;
}

/** Waits until the state has this phase. */
async function phase(supervisor, wanted) {
  while (supervisor.state.phase !== wanted) await once(supervisor, 'state');
  return supervisor.state;
}

/** Time that passes only when told to; remembers how long everybody wanted to sleep. */
function fakeClock() {
  let now = 0;
  let next = null;
  const slept = [];
  return {
    slept,
    now: () => now,
    random: () => 1,
    setTimeout: (what, ms) => {
      slept.push(ms);
      next = { what, at: now + ms };
      return next;
    },
    clearTimeout: (timer) => {
      if (timer === next) next = null;
    },
    /** Jump to whatever comes next. */
    advance: () => {
      const due = next;
      next = null;
      now = due.at;
      due.what();
    },
    pass: (ms) => (now += ms),
  };
}

/** A client without a process. */
class PuppetClient extends EventEmitter {
  constructor(answers) {
    super();
    this.answers = answers;
    this.stderrTail = [];
    this.closed = false;
  }

  async call(method) {
    const answer = this.answers[method];
    if (answer instanceof Error) throw answer;
    return answer;
  }

  async close() {
    this.closed = true;
    this.emit('exit', { code: 0, signal: null });
  }

  crash() {
    this.emit('exit', { code: 1, signal: null });
  }
}

const HELLO = { initialize: { protocolVersion: 1, serverInfo: { version: '1.0.0' } }, 'sync/status': {} };

/** A supervisor on puppets and fake time. */
function puppets(answers = HELLO) {
  const clock = fakeClock();
  const made = [];
  const createClient = () => {
    made.push(new PuppetClient(answers));
    return made.at(-1);
  };
  const supervisor = new SidecarSupervisor({ command: ['x'], clock, createClient });
  supervisor.start();
  return { supervisor, clock, made, last: () => made.at(-1) };
}

const settled = () => new Promise(setImmediate);

test('calls may be made before the handshake is over', async (t) => {
  const supervisor = started(t, fake());
  assert.equal((await supervisor.call('memory/load')).content, '# 记忆😀');
  const state = await phase(supervisor, 'ready');
  assert.equal(state.serverVersion, '9.9.9');
  assert.equal(state.template, false);
});

test('notifications and stderr pass through', async (t) => {
  const supervisor = started(t, echo());
  const told = once(supervisor, 'notification');
  const said = once(supervisor, 'stderr');
  await supervisor.call('test/tell', { value: 1 });
  await supervisor.call('test/noisy');
  assert.deepEqual(await told, ['memory/changed', { value: 1 }]);
  assert.match((await said)[0], /^stray/);
});

test('a sidecar killed in the middle of a call is replaced and works again', async (t) => {
  const supervisor = started(t, echo());
  await phase(supervisor, 'ready');
  const call = supervisor.call('test/held');
  await once(supervisor, 'notification');
  process.kill(supervisor.client.pid, 'SIGKILL');
  await assert.rejects(call, { kind: 'sidecar_gone' });
  const state = await phase(supervisor, 'restarting');
  assert.equal(state.template, true);
  await assert.rejects(supervisor.call('test/echo'), { kind: 'sidecar_gone', retryable: true });
  await phase(supervisor, 'ready');
  assert.equal(await supervisor.call('test/echo', { value: 1 }), 1);
});

test('a crash loop ends in template mode with the last words of the sidecar, and retry starts afresh', async (t) => {
  const clock = fakeClock();
  const supervisor = started(t, fake('--crash-after', '0', '--last-words'), { clock });
  for (let crash = 0; crash < 5; crash += 1) {
    await phase(supervisor, 'restarting');
    clock.advance();
  }
  const state = await phase(supervisor, 'template');
  assert.deepEqual([state.reason, state.hint, state.restarts], ['the disk is full', 'Free some space.', 5]);
  assert.deepEqual(clock.slept, [250, 500, 1000, 2000, 4000]);
  await assert.rejects(supervisor.call('memory/load'), { kind: 'sidecar_gone', message: 'the disk is full' });
  supervisor.retry();
  await phase(supervisor, 'restarting');
  assert.equal(supervisor.state.restarts, 1);
});

test('crashes that are far apart do not add up', async () => {
  const { supervisor, clock, last } = puppets();
  for (let crash = 0; crash < 20; crash += 1) {
    await settled();
    clock.pass(60_000);
    last().crash();
    assert.equal(supervisor.state.phase, 'restarting');
    clock.advance();
  }
  assert.ok(supervisor.state.restarts <= 3);
});

test('the back-off doubles up to thirty seconds and has jitter', () => {
  assert.deepEqual([0, 1, 2, 6, 7, 20].map((count) => backoff(count, 1)), [250, 500, 1000, 16_000, 30_000, 30_000]);
  assert.equal(backoff(0, 0), 125);
});

test('another protocol version is named, both sides, and is not tried again', async (t) => {
  const supervisor = started(t, fake('--protocol', '2'));
  const state = await phase(supervisor, 'template');
  assert.match(state.reason, /speaks protocol 1\b.*9\.9\.9 speaks protocol 2/);
  assert.equal(state.serverVersion, '9.9.9');
  assert.equal(state.restarts, 0);
  assert.ok(state.hint);
});

test('a program that is missing is template mode with a hint', async (t) => {
  const supervisor = started(t, undefined, { setting: '/no/such/program' });
  assert.equal(supervisor.state.phase, 'template');
  assert.match(supervisor.state.reason, /no\/such\/program/);
  assert.ok(supervisor.state.hint);
});

test('a program that cannot be started is tried a few times, then template mode', async (t) => {
  const clock = fakeClock();
  const supervisor = started(t, ['/no/such/program'], { clock });
  for (let attempt = 0; attempt < 5; attempt += 1) {
    await phase(supervisor, 'restarting');
    clock.advance();
  }
  assert.match((await phase(supervisor, 'template')).reason, /ENOENT/);
});

test('a refusal that waiting does not cure ends in template mode at once', async () => {
  const refusal = new SidecarError('this is a service key', { kind: 'service_key_refused', hint: 'Use the other key.' });
  const { supervisor, last, made } = puppets({ initialize: refusal });
  await settled();
  assert.deepEqual([supervisor.state.phase, supervisor.state.reason], ['template', 'this is a service key']);
  assert.equal(last().closed, true);
  assert.equal(made.length, 1);
});

test('a predecessor that still leaves is waited for', async () => {
  const refusal = new SidecarError('already running', { kind: 'already_running' });
  const answers = { initialize: refusal };
  const { supervisor, clock, made } = puppets(answers);
  await settled();
  assert.equal(supervisor.state.phase, 'restarting');
  Object.assign(answers, HELLO);
  clock.advance();
  await settled();
  assert.equal(supervisor.state.phase, 'ready');
  assert.equal(made.length, 2);
});

test('a sidecar that misses two health calls is replaced; one alone may have been a sleep', async () => {
  const answers = { ...HELLO };
  const { supervisor, clock, made } = puppets(answers);
  await settled();
  answers['sync/status'] = new SidecarError('late', { kind: 'timeout' });
  clock.advance();
  await settled();
  answers['sync/status'] = {};
  clock.advance();
  await settled();
  assert.equal(supervisor.state.phase, 'ready');
  answers['sync/status'] = new SidecarError('late', { kind: 'timeout' });
  clock.advance();
  await settled();
  assert.equal(made[0].closed, false);
  clock.advance();
  await settled();
  assert.equal(made[0].closed, true);
  assert.equal(supervisor.state.phase, 'restarting');
});

test('a failing health call is not a missed one', async () => {
  const { supervisor, clock, made } = puppets({ ...HELLO, 'sync/status': new SidecarError('full', { kind: 'storage_full' }) });
  await settled();
  for (let look = 0; look < 5; look += 1) {
    clock.advance();
    await settled();
  }
  assert.equal(supervisor.state.phase, 'ready');
  assert.equal(made.length, 1);
});

test('stop ends the process and nothing starts it again', async (t) => {
  const supervisor = started(t, echo());
  await phase(supervisor, 'ready');
  const { client } = supervisor;
  await supervisor.stop();
  assert.equal(client.exit.code, 0);
  assert.equal(supervisor.state.phase, 'stopped');
  await assert.rejects(supervisor.call('test/echo'), { kind: 'sidecar_gone', retryable: false });
  supervisor.start();
  await phase(supervisor, 'ready');
});

test('no listener is needed for anything', async (t) => {
  const supervisor = started(t, fake('--crash-after', '0'));
  supervisor.call('memory/load').catch(() => {});
  await phase(supervisor, 'restarting');
});
