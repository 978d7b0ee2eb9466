'use strict';

/** The app's own model finds facts: offered at the handshake, asked by the real sidecar, bound by quotes and by calls. */

const assert = require('node:assert/strict');
const http = require('node:http');
const { test } = require('node:test');
const { chatCompletion, createMemory, offerModel } = require('../agent.js');
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

test('an answer as real models give it is read: thoughts, a fence, another width, one id, nulls', async (t) => {
  const long = `帮我想想周末怎么安排，${'顺便看看天气，'.repeat(6)}\n我从今年起不再吃坚果，严重的会喘不上气`;
  const complete = async (request) => {
    const { events } = JSON.parse(request.messages[0].content);
    const { event_id: id } = events.find(({ typed }) => typed.includes('坚果'));
    const operation = { op: 'ADD', event_ids: id, quote: '“我从今年起不再吃坚果, 严重的会喘不上气。”', kind: null, section: '个人情况' };
    return `<think>The user says {x}. Maybe {"op": "end"}?</think>Sure:\n\`\`\`json\n${JSON.stringify([operation])}\n\`\`\``;
  };
  const { memory, supervisor } = await withModel(t, { complete });
  await talk(memory, [long, ...MESSAGES.slice(1)]);
  const isAnswered = ({ calls, waiting }) => calls > 0 && waiting === 0;
  await until(async () => isAnswered(await model(supervisor)), 'the exchanges are read');
  assert.ok((await statements(supervisor)).includes('我从今年起不再吃坚果，严重的会喘不上气'));
  assert.equal((await model(supervisor)).refused, 0);
});

test('a chat completion asks for JSON by schema, and without a field that the API refuses', async (t) => {
  const bodies = [];
  const server = http.createServer(async (request, response) => {
    const chunks = await request.toArray();
    bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
    const { response_format: format, max_tokens: limit } = bodies.at(-1);
    response.writeHead(limit === 13 ? 503 : format?.type === 'json_schema' ? 400 : 200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ choices: [{ message: { content: '{}' } }], usage: { prompt_tokens: 5, completion_tokens: 2 } }));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  t.after(() => server.close());
  const complete = chatCompletion({ url: `http://127.0.0.1:${server.address().port}/v1/`, model: 'small', key: () => 'k' });
  const request = { purpose: 'understanding', system: 's', messages: [{ role: 'user', content: '{}' }], schema: {}, maxTokens: 9 };
  for (let asked = 0; asked < 2; asked += 1) {
    assert.deepEqual(await complete(request), { text: '{}', usage: { inputTokens: 5, outputTokens: 2 } });
  }
  assert.deepEqual(bodies.map(({ response_format: format }) => format.type), ['json_schema', 'json_object', 'json_object']);
  assert.deepEqual(bodies[0].messages.map(({ role }) => role), ['system', 'user']);
  await assert.rejects(complete({ ...request, maxTokens: 13 }), /503/);
});

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
