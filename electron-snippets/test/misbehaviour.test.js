'use strict';

/** The client against sidecars that misbehave. */

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LineSplitter, SidecarClient } = require('../client.js');
const { fake, isAlive, next, rejection, within } = require('./support/world.js');

async function started(t, mode, options = {}, ...args) {
  const client = new SidecarClient({ command: fake(mode, ...args), ...options });
  t.after(() => client.close());
  await within(client.start(), 'start');
  return client;
}

test('characters that arrive byte by byte stay whole', async (t) => {
  const client = await started(t, 'bytes');
  const text = '记忆😀 é ∑ 小白'.repeat(20);
  assert.equal(await within(client.request('x', { text }), 'the answer'), text);
});

test('lines are the same however the bytes are cut', () => {
  const whole = Buffer.from('{"a":"记忆😀"}\n\n{"b":1}\nrest');
  for (let size = 1; size <= whole.length; size += 1) {
    const splitter = new LineSplitter(1024);
    const lines = [];
    for (let at = 0; at < whole.length; at += size) lines.push(...splitter.push(whole.subarray(at, at + size)));
    assert.deepEqual(lines.map(({ bytes }) => bytes.toString()), ['{"a":"记忆😀"}', '', '{"b":1}']);
  }
});

test('a line of 16 MiB arrives', async (t) => {
  const client = await started(t, 'large');
  const characters = Math.ceil((16 * 1024 * 1024) / 3);
  const answer = await within(client.request('x', { characters }), 'the answer');
  assert.equal(answer.length, characters);
  assert.equal(answer.at(-1), '记');
});

test('a line above the limit fails its own call only', async (t) => {
  const client = await started(t, 'large', { lineLimit: 100_000 });
  const [error, small] = await Promise.all([rejection(client.request('x', { characters: 100_000 })), client.request('x', { characters: 3 })]);
  assert.equal(error.kind, 'too_large');
  assert.equal(small, '记记记');
});

test('noise on the wire is reported and harms nothing', async (t) => {
  const client = await started(t, 'noise');
  const reported = next(client, 'protocolError');
  const logged = next(client, 'log');
  const notified = next(client, 'notification');
  client.on('notification', () => {
    throw new Error('a listener with a defect');
  });
  const warned = next(process, 'warning');
  assert.equal(await within(client.request('x'), 'the answer'), 'heard');
  assert.equal((await reported).kind, 'protocol_error');
  assert.equal(await logged, 'a line for the log');
  assert.equal((await notified).method, 'error');
  assert.match((await warned).message, /a listener with a defect/);
});

test('a call that is never answered runs out of time and is cancelled', async (t) => {
  const client = await started(t, 'mute');
  const cancelled = next(client, 'test/cancelled');
  const error = await rejection(client.request('x', {}, { timeoutMs: 30 }));
  assert.deepEqual([error.kind, error.retryable], ['timeout', true]);
  assert.deepEqual(await cancelled, { id: 1 });
});

test('an aborted call is rejected at once and cancelled', async (t) => {
  const client = await started(t, 'mute');
  const cancelled = next(client, 'test/cancelled');
  const controller = new AbortController();
  const call = client.request('x', {}, { signal: controller.signal });
  controller.abort();
  assert.deepEqual([(await rejection(call)).kind, (await cancelled).id], ['cancelled', 1]);
  assert.equal((await rejection(client.request('x', {}, { signal: AbortSignal.abort() }))).code, -32800);
});

test('a sidecar that dies in a call gives its reason', async (t) => {
  const client = await started(t, 'dies');
  const exit = next(client, 'exit');
  const calls = [client.request('x'), client.request('y')];
  for (const error of await Promise.all(calls.map(rejection))) {
    assert.deepEqual([error.kind, error.hint, error.retryable], ['sidecar_exited', 'Call the fire brigade.', true]);
    assert.match(error.message, /exit code 1: the disk is on fire/);
  }
  assert.equal((await exit).code, 1);
});

test('a forgotten await does not end the app', async (t) => {
  const client = await started(t, 'dies');
  const unhandled = [];
  const note = (error) => unhandled.push(error);
  process.on('unhandledRejection', note);
  t.after(() => process.off('unhandledRejection', note));
  client.request('x');
  await next(client, 'exit');
  await new Promise(setImmediate);
  assert.deepEqual(unhandled, []);
});

test('a sidecar that stops listening is ended, its calls are rejected', async (t) => {
  const client = await started(t, 'deafens', { graceMs: 50 });
  assert.equal(await within(client.request('x'), 'the answer'), 'deaf');
  const error = await rejection(client.request('x', { text: 'x'.repeat(1_000_000) }));
  assert.equal(error.kind, 'sidecar_exited');
  assert.equal(isAlive(client.pid), false);
});

test('a client that floods a sidecar that does not read is refused', async (t) => {
  const client = await started(t, 'mute');
  process.kill(client.pid, 'SIGSTOP');
  const calls = Array.from({ length: 6 }, () => client.request('x', { text: 'x'.repeat(7 * 1024 * 1024) }));
  assert.equal((await rejection(calls.at(-1))).kind, 'overloaded');
  process.kill(client.pid, 'SIGKILL');
  assert.equal((await rejection(calls[0])).kind, 'sidecar_exited');
});

test('another version of the protocol is refused by naming both', async (t) => {
  const client = new SidecarClient({ command: fake('version', '2') });
  t.after(() => client.close());
  const error = await rejection(client.start({ handshake: true }));
  assert.equal(error.kind, 'version_mismatch');
  assert.equal(error.message, 'this app speaks protocol 1, xiaobai-memory 9.8.7 speaks protocol 2');
  assert.match(error.hint, /Update the app/);
  assert.equal(client.state, 'ended');
});

test('a program that does not exist is an error with a hint', async () => {
  const client = new SidecarClient({ command: ['/no/such/program'] });
  const error = await rejection(client.start());
  assert.equal(error.kind, 'spawn_failed');
  assert.match(error.hint, /\/no\/such\/program/);
  assert.equal((await rejection(client.request('x'))).kind, 'not_running');
  await within(client.close(), 'close');
});

test('close ends even a sidecar that ignores everything', async (t) => {
  const client = await started(t, 'stubborn', { graceMs: 50 });
  await within(client.request('x'), 'the answer');
  assert.deepEqual(await within(client.close(), 'close'), { code: null, signal: 'SIGKILL' });
  assert.equal(isAlive(client.pid), false);
});

test('a client that was never started can be closed', async () => {
  await within(new SidecarClient({ command: fake('echo') }).close(), 'close');
});
