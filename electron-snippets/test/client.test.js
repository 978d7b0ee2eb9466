'use strict';

/** The client against the real sidecar. */

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { once } = require('node:events');
const { after, before, test } = require('node:test');
const { SidecarClient, SidecarError } = require('../client.js');
const { COMMAND, WITHIN_MS, gone, isAlive, makeHome, next, rejection, within } = require('./support/world.js');

/** For tests that leave the sidecar as they found it. */
const shared = new SidecarClient({ command: COMMAND, env: makeHome().env });
before(() => within(shared.start(), 'start'));
after(() => shared.close());

async function started(t, { home = makeHome(), graceMs, ...options } = {}) {
  const client = new SidecarClient({ command: COMMAND, env: home.env, graceMs });
  t.after(() => client.close());
  await within(client.start(options), 'start');
  return { client, home };
}

test('an update is in the next load and in the system prompt', async (t) => {
  const { client } = await started(t);
  const before = await client.request('memory/load', { waitMs: 0 });
  assert.equal(before.source, 'template');
  const update = await client.request('memory/update', { userMessage: '你好，我叫晓力', aiResponse: '很高兴认识你，晓力！' });
  assert.equal(update.recorded, true);
  const { content, source } = await client.request('memory/load');
  assert.match(content, /- 用户问：你好，我叫晓力\n- AI 答：很高兴认识你，晓力！/);
  assert.equal(source, 'local');
  const { prompt } = await client.request('memory/systemPrompt', { waitMs: 0 });
  assert.match(prompt, /晓力/);
});

test('text that was cut inside an emoji is accepted', async () => {
  const client = shared;
  const update = await client.request('memory/update', { userMessage: '看这个😀'.slice(0, 4), aiResponse: '好' });
  assert.equal(update.recorded, true);
});

test('many calls at once get their own answers', async () => {
  const client = shared;
  const names = Array.from({ length: 200 }, (_, number) => `mark-${number}`);
  const set = (name) => client.request('watermarks/set', { name, position: 0 });
  const answers = await within(Promise.all(names.map(set)), 'all answers');
  assert.deepEqual(answers.map(({ name }) => name), names);
});

test('after a handshake changes are announced', async (t) => {
  const { client } = await started(t, { handshake: { locale: 'zh-CN' } });
  const named = next(client, 'memory/changed');
  const general = next(client, 'notification', ({ method }) => method === 'memory/changed');
  await client.request('memory/update', { userMessage: '问', aiResponse: '答' });
  assert.equal(typeof (await named).nextOffset, 'number');
  assert.deepEqual((await general).method, 'memory/changed');
});

test('the handshake answers version, device and account', async (t) => {
  const client = new SidecarClient({ command: COMMAND, env: makeHome().env });
  t.after(() => client.close());
  const answer = await within(client.start({ handshake: true }), 'the handshake');
  assert.equal(answer.protocolVersion, 1);
  assert.equal(answer.serverInfo.name, 'xiaobai-memory');
  assert.equal(answer.account.state, 'not_configured');
});

test('errors carry code, kind, hint and the field at fault', async () => {
  const client = shared;
  const error = await rejection(client.request('memory/update', { userMessage: 'x' }));
  assert.ok(error instanceof SidecarError);
  assert.deepEqual([error.code, error.kind, error.field, error.retryable], [-32602, 'invalid_input', 'aiResponse', false]);
  assert.notEqual(error.hint, '');
  assert.equal((await rejection(client.request('no/such'))).kind, 'unknown_method');
});

test('a request above the bound is refused here and the client goes on', async () => {
  const client = shared;
  const error = await rejection(client.request('memory/update', { userMessage: 'x'.repeat(9 * 1024 * 1024), aiResponse: '' }));
  assert.equal(error.kind, 'too_large');
  assert.equal((await rejection(client.request('memory/load', { waitMs: 1n }))).kind, 'invalid_input');
  assert.match((await client.request('memory/load', { waitMs: 0 })).content, /# AI 对话记忆/);
});

test('a sidecar killed in the middle of a call rejects it', async (t) => {
  const { client } = await started(t);
  await client.request('memory/load', { waitMs: 0 });
  process.kill(client.pid, 'SIGSTOP'); // it cannot answer before it dies
  const call = client.request('sync/status');
  process.kill(client.pid, 'SIGKILL');
  const error = await rejection(call);
  assert.deepEqual([error.kind, error.retryable], ['sidecar_exited', true]);
  assert.match(error.message, /SIGKILL/);
  assert.equal((await rejection(client.request('sync/status'))).kind, 'not_running');
});

test('a wrong setting is told in the words of the sidecar', async (t) => {
  const home = makeHome();
  home.env.XIAOBAI_NO_SUCH_SETTING = '1';
  const { client } = await started(t, { home });
  const error = await rejection(client.request('memory/load'));
  assert.equal(error.kind, 'sidecar_exited');
  assert.match(error.message, /XIAOBAI_NO_SUCH_SETTING/);
  assert.notEqual(error.hint, '');
});

test('close lets the sidecar finish what it accepted and leave with 0', async (t) => {
  const { client, home } = await started(t, { graceMs: WITHIN_MS });
  await client.request('memory/update', { userMessage: '之前', aiResponse: '答' }); // now it is open and has loaded all that an update needs
  const updates = Array.from({ length: 3 }, (_, n) => client.request('memory/update', { userMessage: `问题${n}`, aiResponse: '答' }));
  const how = await within(client.close(), 'close');
  assert.deepEqual(how, { code: 0, signal: null });
  assert.equal(isAlive(client.pid), false);
  const results = await Promise.all(updates);
  assert.ok(results.every(({ recorded }) => recorded));
  const { client: again } = await started(t, { home });
  const { content } = await again.request('memory/load', { waitMs: 0 });
  for (let n = 0; n < 3; n += 1) assert.match(content, new RegExp(`问题${n}`));
  assert.equal(await within(client.close(), 'a second close'), how);
});

test('the sidecar ends when the app is killed', async (t) => {
  const { env } = makeHome();
  const app = spawn(process.execPath, [path.join(__dirname, 'support', 'parent.js'), JSON.stringify(COMMAND)], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => app.kill('SIGKILL'));
  const [pid] = await within(once(app.stdout, 'data'), 'the pid of the sidecar');
  assert.ok(isAlive(Number(pid)));
  app.kill('SIGKILL');
  await gone(Number(pid));
});

test('it can be imported by name from a module', async () => {
  const module = await import('../client.js');
  assert.equal(module.SidecarClient, SidecarClient);
  assert.deepEqual(Object.keys(module).filter((name) => !['default', 'module.exports'].includes(name)).sort(), ['LineSplitter', 'PROTOCOL_VERSION', 'SidecarClient', 'SidecarError', 'findSidecar']);
});

test('the files depend on nothing outside this folder', () => {
  const folder = path.join(__dirname, '..');
  for (const file of fs.readdirSync(folder).filter((name) => name.endsWith('.js'))) {
    const imports = [...fs.readFileSync(path.join(folder, file), 'utf8').matchAll(/require\('([^']+)'\)/g)].map(([, name]) => name);
    assert.ok(imports.every((name) => /^(node:|\.\/|electron$)/.test(name)), `${file}: ${imports}`);
  }
});
