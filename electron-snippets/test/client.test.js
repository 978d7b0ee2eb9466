'use strict';

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');

const { LineSplitter, SidecarClient, SidecarError, findSidecar } = require('../client.js');
const { ROOT, echo, fake } = require('../testing/programs.js');

/** A client of the echo sidecar that is closed with the test. */
function started(t, command = echo(), options = {}) {
  const client = new SidecarClient({ command, cwd: ROOT, ...options });
  t.after(() => client.close());
  return client;
}

const MIB = 1024 * 1024;

test('a call is answered, also in Chinese and with emoji', async (t) => {
  const client = started(t);
  for (const value of [null, 1, '记忆😀', [1, { 深: ['处'] }], 'x'.repeat(300_000)]) {
    assert.deepEqual(await client.call('test/echo', { value }), value);
  }
});

test('many calls at once each get their own answer', async (t) => {
  const client = started(t);
  const values = Array.from({ length: 500 }, (_, n) => n);
  assert.deepEqual(await Promise.all(values.map((value) => client.call('test/echo', { value }))), values);
});

test('an answer cut inside characters arrives whole', async (t) => {
  const client = started(t, fake('--bytewise'));
  assert.equal((await client.call('memory/load')).content, '# 记忆😀');
});

test('lines are cut on bytes whatever the chunks', () => {
  const text = ['{"a":"记忆😀"}', '', 'x', '字'.repeat(50)];
  const bytes = Buffer.from(`${text.join('\n')}\n`);
  for (const size of [1, 2, 3, 7, 64, bytes.length]) {
    const lines = [];
    const splitter = new LineSplitter((line) => lines.push(line.toString('utf8')));
    for (let at = 0; at < bytes.length; at += size) splitter.push(bytes.subarray(at, at + size));
    assert.deepEqual(lines, text.filter(Boolean));
  }
});

test('a line above the limit is dropped, reported once, and the next one is read', () => {
  const lines = [];
  let reported = 0;
  const splitter = new LineSplitter((line) => lines.push(String(line)), { limit: 10, onTooLong: () => (reported += 1) });
  for (const chunk of ['a\nlong', ' long long', ' long\n', 'b\n']) splitter.push(Buffer.from(chunk));
  assert.deepEqual(lines, ['a', 'b']);
  assert.equal(reported, 1);
});

test('an answer of 16 MiB arrives whole', async (t) => {
  const client = started(t);
  const text = await client.call('test/large', { size: 16 * MIB });
  assert.equal(Buffer.byteLength(text), Math.floor((16 * MIB) / 3) * 3);
});

test('a request of 16 MiB is refused here, and the next call works', async (t) => {
  const client = started(t);
  await assert.rejects(client.call('test/echo', { value: 'x'.repeat(16 * MIB) }), { kind: 'too_large' });
  assert.equal(await client.call('test/echo', { value: 1 }), 1);
});

test('half a character in a message is replaced, not refused', async (t) => {
  const client = started(t);
  assert.equal(await client.call('test/echo', { value: '😀'.slice(0, 1) }), '\ufffd');
});

test('a failure carries code, kind, hint and retryable', async (t) => {
  const client = started(t);
  const error = await client.call('test/fail').catch((reason) => reason);
  assert.ok(error instanceof SidecarError);
  const { code, kind, retryable } = error;
  assert.deepEqual({ code, kind, retryable }, { code: -32021, kind: 'storage_full', retryable: true });
  assert.ok(error.hint);
  assert.deepEqual(JSON.parse(JSON.stringify(error)).kind, 'storage_full');
});

test('bad parameters name the field', async (t) => {
  await assert.rejects(started(t).call('test/slow', { seconds: 'soon' }), { code: -32602, field: 'seconds' });
});

test('a call that is not answered in time is given up here and cancelled there', async (t) => {
  const client = started(t);
  await assert.rejects(client.call('test/held', {}, { timeoutMs: 300 }), { kind: 'timeout', retryable: true });
  await client.call('test/release');
  assert.equal(client.pending.size, 0);
});

test('a call can be cancelled with a signal', async (t) => {
  const client = started(t);
  const controller = new AbortController();
  const call = client.call('test/held', {}, { signal: controller.signal });
  await once(client, 'notification');
  controller.abort();
  await assert.rejects(call, { kind: 'cancelled' });
  await assert.rejects(client.call('test/echo', {}, { signal: controller.signal }), { kind: 'cancelled' });
});

test('notifications are events', async (t) => {
  const client = started(t);
  const told = once(client, 'notification');
  await client.call('test/tell', { value: 'news' });
  assert.deepEqual(await told, ['memory/changed', { value: 'news' }]);
});

test('what a handler prints is stderr, not an answer', async (t) => {
  const client = started(t);
  const bad = [];
  client.on('badLine', (reason) => bad.push(reason));
  assert.equal(await client.call('test/noisy'), 'quiet');
  await client.close();
  assert.deepEqual(bad, []);
  assert.ok(client.stderrTail.includes('stray print'));
});

test('things that are not protocol are reported and harm nobody', async (t) => {
  const client = started(t, fake('--noise'));
  const bad = [];
  client.on('badLine', (reason) => bad.push(reason));
  assert.equal((await client.call('memory/load')).source, 'local');
  assert.ok(bad.length > 0);
});

test('a sidecar killed in the middle of a call rejects it and every later one', async (t) => {
  const client = started(t);
  const call = client.call('test/held');
  await once(client, 'notification');
  process.kill(client.pid, 'SIGKILL');
  await assert.rejects(call, { kind: 'sidecar_gone', retryable: true });
  await assert.rejects(client.call('test/echo'), { kind: 'sidecar_gone' });
  client.notify('test/echo');
});

test('writing to a sidecar that has just died does not raise', async (t) => {
  const client = started(t, fake('--crash-after', '1'));
  await client.call('first');
  const calls = Array.from({ length: 50 }, () => client.call('test/echo', { value: 'x'.repeat(10_000) }));
  for (const { status } of await Promise.allSettled(calls)) assert.equal(status, 'rejected');
});

test('a program that does not exist is an exit, not a crash', async (t) => {
  const client = started(t, [path.join(ROOT, 'no-such-program')]);
  await assert.rejects(client.call('test/echo'), { kind: 'sidecar_gone' });
  const { error } = await client.exited;
  assert.equal(error.code, 'ENOENT');
});

test('close answers what runs, then ends with zero within two seconds', async (t) => {
  const client = started(t);
  const call = client.call('test/slow', { seconds: 0.2, label: 'kept' });
  await client.call('test/echo');
  const begun = performance.now();
  await client.close();
  assert.equal(await call, 'kept');
  assert.equal(client.exit.code, 0);
  assert.ok(performance.now() - begun < 2000);
  await client.close();
});

test('a sidecar that ignores the closed input and SIGTERM is killed', { skip: process.platform === 'win32' }, async (t) => {
  const client = started(t, fake('--stubborn'), { stopStepMs: 200 });
  await client.call('memory/load');
  await client.close();
  assert.equal(client.exit.signal, 'SIGKILL');
});

test('the sidecar ends when this process dies', async () => {
  const script = `
    const { spawn } = require('node:child_process');
    const { SidecarClient } = require(${JSON.stringify(path.join(__dirname, '..', 'client.js'))});
    const inheriting = (program, args, options) => spawn(program, args, { ...options, stdio: [...options.stdio, 3] });
    const client = new SidecarClient({ ...JSON.parse(process.argv[1]), spawn: inheriting });
    client.call('test/echo').then(() => console.log('ready'));
    setInterval(() => {}, 1000);`;
  const options = JSON.stringify({ command: echo(), cwd: ROOT });
  const parent = spawn(process.execPath, ['-e', script, options], { stdio: ['ignore', 'pipe', 'inherit', 'pipe'] });
  await once(parent.stdout, 'data');
  const witness = parent.stdio[3]; // ends when its last holder, the sidecar, is gone
  const ended = once(witness.resume(), 'close');
  const begun = performance.now();
  parent.kill('SIGKILL');
  await ended;
  assert.ok(performance.now() - begun < 5000);
});

test('the program is looked for in the setting, then in the bundle, then in PATH', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'xiaobai-find-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const put = (...parts) => {
    const file = path.join(folder, ...parts);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, '');
    return file;
  };
  const own = put('own', 'memory');
  const bundled = put('resources', 'xiaobai-memory', 'xiaobai-memory');
  const onPath = put('path', 'xiaobai-memory');
  const options = { resourcesPath: path.join(folder, 'resources'), env: { PATH: path.dirname(onPath) }, platform: 'linux' };
  assert.deepEqual(findSidecar({ ...options, setting: own }), [own, 'serve']);
  assert.deepEqual(findSidecar({ ...options, setting: ['python', '-m', 'x'] }), ['python', '-m', 'x']);
  assert.deepEqual(findSidecar(options), [bundled, 'serve']);
  assert.deepEqual(findSidecar({ ...options, resourcesPath: folder }), [onPath, 'serve']);
  assert.throws(() => findSidecar({ ...options, setting: `${own}-not` }), { kind: 'not_found' });
  assert.throws(() => findSidecar({ env: { PATH: folder }, platform: 'linux' }), { kind: 'not_found' });
  const exe = put('win', 'xiaobai-memory.exe');
  assert.deepEqual(findSidecar({ env: { Path: path.dirname(exe) }, platform: 'win32' }), [exe, 'serve']);
});
