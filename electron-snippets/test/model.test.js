'use strict';

/** The app's own model finds facts: offered at the handshake, asked by the real sidecar, bound by quotes and by calls. */

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { createMemory, offerModel } = require('../agent.js');
const { SidecarSupervisor } = require('../supervisor.js');
const { COMMAND, UNHURRIED, fake, makeHome, until, within } = require('./support/world.js');

const TYPED = '球拍是碳素的，上周刚换了线'; // no rule reads it
const MESSAGES = [TYPED, '我每周三晚上打羽毛球', '今天天气不错', '谢谢', '好的，先这样'];

/** A supervised sidecar whose app has this model; ended with the test. */
async function withModel(t, options) {
  const offer = offerModel({ maxCallsPerDay: 3, ...options });
  const supervisor = new SidecarSupervisor({
    command: COMMAND,
    env: makeHome().env,
    initialize: { capabilities: offer.capabilities },
    handlers: offer.handlers,
  });
  t.after(() => supervisor.stop());
  await within(supervisor.start(), 'start');
  return { offer, supervisor, memory: createMemory({ supervisor, limits: UNHURRIED }) };
}

async function talk(memory, messages = MESSAGES) {
  for (const message of messages) await memory.updateAIMemory(message, '好的');
}

const model = async (supervisor) => (await supervisor.request('sync/status')).model;
const statements = async (supervisor) => {
  const { facts } = await supervisor.request('understanding/facts', { status: 'all' });
  return facts.map((fact) => fact.statement);
};

/** An answer by schema: each of these quotes as a fact of the event in which it occurs, or else of the first one. */
function answering(...quotes) {
  return ({ messages, schema }) => {
    const { events } = JSON.parse(messages[0].content);
    assert.deepEqual(schema.required, ['operations']);
    const operations = quotes.map((quote) => ({
      op: 'add',
      event_ids: [(events.find(({ typed }) => typed.includes(quote)) ?? events[0]).event_id],
      quote,
      kind: 'relationship',
      section: 'personal',
    }));
    return { text: JSON.stringify({ operations }), usage: { inputTokens: 120, outputTokens: 30 } };
  };
}

test('what the model quotes becomes a fact, and what it invents is refused', async (t) => {
  const invented = ['我的球拍是木头的', '用户希望总是先打开 evil.example'];
  const { memory, supervisor } = await withModel(t, { complete: async (request) => answering(TYPED, ...invented)(request) });
  await talk(memory);
  await until(async () => (await model(supervisor))?.refused >= 2, 'the invented operations are refused');
  const found = await statements(supervisor);
  assert.ok(found.includes(TYPED));
  for (const text of invented) assert.ok(!found.includes(text), text);
  const { source, calls, tokens, maxCallsPerDay, lastError } = await model(supervisor);
  assert.deepEqual({ source, calls, tokens, maxCallsPerDay, lastError }, { source: 'client', calls: 1, tokens: 150, maxCallsPerDay: 3, lastError: null });
});

for (const [what, complete, expected] of [
  ['garbage', async () => 'Sure! Here are the facts.', /not the JSON/],
  ['too large an answer', async () => 'x'.repeat(1_000_000), /characters/],
  ['a model that never answers', () => new Promise(() => {}), /answered with an error/],
  ['an answer that is not JSON', async () => ({ text: 1n }), /answered with an error/],
]) {
  test(`${what} records nothing, and the memory goes on`, async (t) => {
    const { memory, supervisor } = await withModel(t, { complete, timeoutMs: 200 });
    await talk(memory, ['今天天气不错', '谢谢', '好的，先这样', '晚安', '早']);
    await until(async () => Boolean((await model(supervisor))?.lastError), 'a failure in the status');
    const { lastError, recorded } = await model(supervisor);
    assert.match(lastError, expected);
    assert.equal(recorded, 0);
    assert.match(await memory.loadAIMemory(), /今天天气不错/);
  });
}

test('the app bounds the calls of a day and can switch its model off', async () => {
  let day = 'Monday';
  const offer = offerModel({ complete: async () => 'ok', maxCallsPerDay: 2, today: () => day });
  const ask = offer.handlers['model/complete'];
  assert.deepEqual([await ask({}), await ask({})], [{ text: 'ok' }, { text: 'ok' }]);
  await assert.rejects(ask({}), /often enough/);
  day = 'Tuesday';
  assert.deepEqual(await ask({}), { text: 'ok' });
  offer.enabled = false;
  await assert.rejects(ask({}), /switched off/);
  assert.equal(offer.calls, 1);
});

test('a request for which nobody is registered is answered with an error', async (t) => {
  const supervisor = new SidecarSupervisor({ command: fake('asks'), initialize: {}, handlers: {} });
  t.after(() => supervisor.stop());
  await within(supervisor.start(), 'start');
  assert.deepEqual(await within(supervisor.request('echo/answer', {}), 'the answer'), { code: -32601 });
});
