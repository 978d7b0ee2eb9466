'use strict';

/** What the chat uses: load, update, prompt, and the queue for the time without a sidecar. */

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { PROMPT_WITHOUT_MEMORY, TEMPLATE, createMemory } = require('../agent.js');
const { ENGLISH, textsFor } = require('../texts.js');
const { SidecarClient, SidecarError } = require('../client.js');
const { SidecarSupervisor } = require('../supervisor.js');
const { COMMAND, UNHURRIED, makeHome, next, reaches, until, within } = require('./support/world.js');

function supervised(t, options = {}) {
  const home = makeHome();
  const supervisor = new SidecarSupervisor({ command: COMMAND, env: home.env, ...options });
  t.after(() => supervisor.stop());
  return { supervisor, home };
}

/** A sidecar that responds with `answer` and records its requests. */
function answering(answer) {
  const asked = [];
  const request = async (method, params) => {
    asked.push({ method, params });
    return answer({ method, params });
  };
  return { request, asked };
}

const down = () => {
  throw new SidecarError('not_running', 'away', { retryable: true });
};
const times = (text, part) => text.split(part).length - 1;

test('what was updated is loaded and stands in the prompt after its base', async (t) => {
  const { supervisor } = supervised(t);
  supervisor.start(); // not awaited: the first message may come before the sidecar is up
  const log = [];
  const memory = createMemory({ supervisor, limits: UNHURRIED, log: (line) => log.push(line) });
  assert.match(await memory.loadAIMemory(), /# AI 对话记忆/);
  await supervisor.start(); // on a busy machine an update would be queued until then
  await memory.updateAIMemory('我喜欢简洁的代码', '好的，我会记住', { sessionId: 's1', importance: 0.5 });
  await memory.flush();
  assert.deepEqual([memory.queued, log], [0, []]);
  assert.match(await memory.loadAIMemory(), /- 用户问：我喜欢简洁的代码\n- AI 答：好的，我会记住/);
  const prompt = await memory.buildSystemPrompt('你是小白AI。');
  assert.ok(prompt.startsWith('你是小白AI。\n\n'));
  assert.match(prompt, /我喜欢简洁的代码/);
});

test('a plain client will do', async (t) => {
  const client = new SidecarClient({ command: COMMAND, env: makeHome().env });
  t.after(() => client.close());
  await client.start();
  const memory = createMemory({ client, limits: UNHURRIED });
  assert.equal((await memory.updateAIMemory('问', '答')).recorded, true);
  assert.match(await memory.loadAIMemory(), /- 用户问：问/);
});

test('a message is given what belongs to it, once a session', async (t) => {
  const client = new SidecarClient({ command: COMMAND, env: makeHome().env });
  t.after(() => client.close());
  await client.start();
  const memory = createMemory({ client, limits: UNHURRIED, log: (line) => t.diagnostic(line) });
  await memory.updateAIMemory('部署脚本放在 scripts/deploy.sh', '好的', { sessionId: 's1' });
  assert.match(await memory.contextFor('部署脚本在哪里', { sessionId: 's2' }), /scripts\/deploy\.sh/);
  assert.equal(await memory.contextFor('部署脚本在哪里', { sessionId: 's2' }), '', 'once a session');
  assert.equal(await memory.contextFor('谢谢'), '');
  assert.equal(await memory.contextFor(''), '');
});

test('the template is what the sidecar begins with', async (t) => {
  const { supervisor } = supervised(t);
  await within(supervisor.start(), 'start');
  const { document } = await createMemory({ supervisor, limits: UNHURRIED }).load();
  const lines = (text) => text.split('\n').filter((line) => line && line !== '---' && !line.startsWith('**最后更新**'));
  assert.deepEqual(lines(TEMPLATE), lines(document));
});

test('an app with another locale gets the English template and messages', async (t) => {
  const { supervisor } = supervised(t, { initialize: { locale: 'en-US' } });
  const memory = createMemory({ supervisor, limits: UNHURRIED });
  await within(supervisor.start(), 'start');
  const { document } = await memory.load();
  const lines = (text) => text.split('\n').filter((line) => line && line !== '---' && !line.startsWith('**Last updated**'));
  assert.deepEqual(lines(ENGLISH.template), lines(document));
  assert.equal(supervisor.snapshot.message, ENGLISH.states.running);
  await memory.updateAIMemory('I live in Leeds', 'Noted.');
  assert.match(await memory.buildSystemPrompt('You are Xiaobai.'), /^You are Xiaobai\.\n[^]*remembers about the user[^]*I live in Leeds/);
  const alone = createMemory({ client: answering(down), locale: 'de-DE' });
  assert.equal(await alone.loadAIMemory(), ENGLISH.template);
  assert.equal(await alone.buildSystemPrompt(''), ENGLISH.promptWithoutMemory);
  assert.equal(textsFor('zh_TW.UTF-8'), textsFor(undefined));
});

test('without a sidecar there is the template, and nothing is thrown', async () => {
  const memory = createMemory({ client: answering(down) });
  assert.equal(await memory.loadAIMemory(), TEMPLATE);
  assert.deepEqual([(await memory.load()).source, (await memory.load()).stale], ['template', true]);
  assert.equal(await memory.buildSystemPrompt('你是小白AI。'), `你是小白AI。\n\n${PROMPT_WITHOUT_MEMORY}`);
  assert.deepEqual(await memory.updateAIMemory('问', '答'), { recorded: false, queued: true, eventId: null });
});

test('updates made while the sidecar restarts are recorded once each, in order', async (t) => {
  const { supervisor } = supervised(t);
  await within(supervisor.start(), 'start');
  const memory = createMemory({ supervisor, limits: UNHURRIED });
  await memory.updateAIMemory('甲', '答');
  process.kill(supervisor._client.pid, 'SIGKILL');
  await reaches(supervisor, 'waiting');
  const updates = ['乙', '丙', '丁'].map((word) => memory.updateAIMemory(word, '答'));
  assert.equal(memory.queued, 3);
  await reaches(supervisor, 'running');
  await Promise.all(updates);
  await memory.flush();
  assert.equal(memory.queued, 0);
  const content = await memory.loadAIMemory();
  const found = [...content.matchAll(/用户问：([甲乙丙丁])/g)].map(([, word]) => word);
  assert.deepEqual(found, ['甲', '乙', '丙', '丁']);
});

test('an update whose answer got lost is not recorded twice', async (t) => {
  const { supervisor } = supervised(t);
  await within(supervisor.start(), 'start');
  const real = supervisor.request.bind(supervisor);
  let lost = 0;
  supervisor.request = async (method, params, options) => {
    const answer = await real(method, params, options);
    if (method !== 'memory/update' || lost > 0) return answer;
    lost += 1;
    throw new SidecarError('timeout', 'the answer got lost', { retryable: true });
  };
  const memory = createMemory({ supervisor, limits: UNHURRIED });
  assert.equal((await memory.updateAIMemory('只记一次', '答')).queued, true);
  await memory.flush();
  assert.deepEqual([lost, memory.queued], [1, 0]);
  assert.equal(times(await memory.loadAIMemory(), '只记一次'), 1);
});

test('an update that is refused for good is not kept', async () => {
  const refuse = () => {
    throw new SidecarError('invalid_input', 'no');
  };
  const memory = createMemory({ client: answering(refuse) });
  assert.deepEqual(await memory.updateAIMemory('问', '答'), { recorded: false, eventId: null, reason: 'invalid_input' });
  assert.equal(memory.queued, 0);
});

test('one bad update does not hold up the others for ever', async () => {
  const recorded = [];
  const sidecar = answering(({ params }) => {
    if (params.userMessage === '坏') throw new SidecarError('timeout', 'late', { retryable: true });
    recorded.push(params.userMessage);
    return { recorded: true, eventId: 'e', pending: 0 };
  });
  const memory = createMemory({ client: sidecar });
  for (const word of ['坏', '好', '更好']) await memory.updateAIMemory(word, '答');
  await memory.flush();
  assert.deepEqual(recorded.sort(), ['好', '更好'].sort());
  assert.equal(memory.queued, 1);
});

test('the queue is bounded, drops the oldest, and logs no content', async () => {
  const log = [];
  const memory = createMemory({ client: answering(down), log: (line) => log.push(line) });
  for (let number = 0; number < 205; number += 1) await memory.updateAIMemory(`秘密${number}`, '答');
  assert.equal(memory.queued, 200);
  await memory.updateAIMemory('长'.repeat(4 * 1024 * 1024), '答');
  assert.equal(memory.queued, 1);
  assert.ok(log.length > 0 && log.every((line) => !/秘密|长/.test(line)));
});

test('a chat does not wait longer than its limit for an update', async () => {
  const memory = createMemory({ client: { request: () => new Promise(() => {}) }, limits: { updateMs: 20 } });
  assert.equal((await within(memory.updateAIMemory('问', '答'), 'the update')).queued, true);
});

test('two devices pair by a code, and what one records is on the other', async (t) => {
  const [desktop, laptop] = await Promise.all(
    ['desktop', 'laptop'].map(async (name) => {
      const lan = { XIAOBAI_LAN__ENABLED: 'auto', XIAOBAI_LAN__ADDRESS: '127.0.0.1', XIAOBAI_DEVICE_ID: name };
      const client = new SidecarClient({ command: COMMAND, env: { ...makeHome().env, ...lan } });
      t.after(() => client.close());
      await client.start({ handshake: true });
      return client;
    }),
  );
  const shown = await desktop.request('lan/pair', {});
  assert.equal(shown.state, 'waiting');
  const paired = next(desktop, 'lan/pairingChanged', ({ pairing }) => pairing.state === 'paired');
  const entered = await laptop.request('lan/pair', { code: shown.uri });
  assert.deepEqual((await paired).pairing.words, entered.words);
  await createMemory({ client: desktop, limits: UNHURRIED }).updateAIMemory('我住在杭州', '好的');
  const memory = createMemory({ client: laptop, limits: UNHURRIED });
  await until(async () => (await memory.loadAIMemory()).includes('我住在杭州'), 'the exchange is on the laptop');
  const { peers } = await laptop.request('lan/peers', {});
  assert.deepEqual(peers.map((peer) => peer.deviceId), ['desktop']);
  const { paired: left } = await laptop.request('lan/forget', { deviceId: 'desktop' });
  assert.deepEqual(left, []);
});
