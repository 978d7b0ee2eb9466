'use strict';

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const { test } = require('node:test');

const { SidecarError } = require('../client.js');
const { TEMPLATE, createAgent } = require('../agent.js');

const GONE = new SidecarError('gone', { kind: 'sidecar_gone', retryable: true });

/** A sidecar whose answers a test writes down. */
class Puppet extends EventEmitter {
  constructor(answers = {}) {
    super();
    this.answers = answers;
    this.calls = [];
  }

  async call(method, params) {
    this.calls.push({ method, params });
    const answer = this.answers[method];
    if (answer instanceof Error) throw answer;
    return answer;
  }
}

const settled = () => new Promise(setImmediate);

test('the memory is loaded from the sidecar', async () => {
  const agent = createAgent({ sidecar: new Puppet({ 'memory/load': { content: '# 记忆', source: 'local' } }) });
  assert.equal(await agent.loadAIMemory(), '# 记忆');
});

test('without a sidecar the chat gets the template', async () => {
  const agent = createAgent({ sidecar: new Puppet({ 'memory/load': GONE, 'memory/systemPrompt': GONE }) });
  assert.equal(await agent.loadAIMemory(), TEMPLATE);
  const prompt = await agent.buildSystemPrompt('你是小白AI。');
  assert.ok(prompt.startsWith('你是小白AI。\n\n'));
  assert.ok(prompt.includes('# AI 对话记忆'));
  assert.ok(prompt.includes('记忆使用规则'));
});

test('what was known last is better than the template', async () => {
  const answers = { 'memory/load': { content: '# 旧', source: 'local' }, 'memory/systemPrompt': { prompt: '旧块' } };
  const agent = createAgent({ sidecar: new Puppet(answers) });
  await agent.loadAIMemory();
  await agent.buildSystemPrompt('x');
  answers['memory/load'] = answers['memory/systemPrompt'] = GONE;
  assert.equal(await agent.loadAIMemory(), '# 旧');
  assert.equal(await agent.buildSystemPrompt('x'), 'x\n\n旧块');
});

test('an update says whether it is safe', async () => {
  const sidecar = new Puppet({ 'memory/update': { eventId: 'evt_1', recorded: true } });
  const agent = createAgent({ sidecar });
  assert.equal(await agent.updateAIMemory('你好', '你好！', { sessionId: 's' }), true);
  const { params } = sidecar.calls[0];
  assert.deepEqual([params.userMessage, params.aiResponse, params.sessionId], ['你好', '你好！', 's']);
  assert.ok(params.idempotencyKey);
});

test('updates made while the sidecar is away are delivered when it is back, in order and with their own keys', async () => {
  const answers = { 'memory/update': GONE };
  const sidecar = new Puppet(answers);
  const agent = createAgent({ sidecar });
  for (const text of ['一', '二', '三']) assert.equal(await agent.updateAIMemory(text, ''), false);
  assert.equal(agent.waiting(), 3);
  const keys = sidecar.calls.map((call) => call.params.idempotencyKey);
  sidecar.calls.length = 0;
  answers['memory/update'] = { recorded: true };
  sidecar.emit('state', { phase: 'ready' });
  await settled();
  assert.deepEqual(sidecar.calls.map((call) => call.params.idempotencyKey), keys);
  assert.equal(new Set(keys).size, 3);
  assert.equal(agent.waiting(), 0);
});

test('an update that is refused for good is not kept', async () => {
  const refusal = new SidecarError('too large', { kind: 'too_large' });
  const agent = createAgent({ sidecar: new Puppet({ 'memory/update': refusal }) });
  assert.equal(await agent.updateAIMemory('x', 'y'), false);
  assert.equal(agent.waiting(), 0);
});

test('the backlog is bounded', async () => {
  const lines = [];
  const agent = createAgent({ sidecar: new Puppet({ 'memory/update': GONE }), log: (line) => lines.push(line) });
  for (let n = 0; n < 510; n += 1) await agent.updateAIMemory(`问${n}`, '答');
  assert.equal(agent.waiting(), 500);
  assert.ok(lines.some((line) => line.includes('backlog')));
  assert.ok(!lines.some((line) => line.includes('问')));
});

test('nothing a broken sidecar does reaches the chat', async () => {
  for (const wrong of [new TypeError('x'), undefined, null, 7]) {
    const sidecar = new Puppet({ 'memory/load': wrong, 'memory/systemPrompt': wrong, 'memory/update': wrong });
    const agent = createAgent({ sidecar });
    assert.equal(typeof (await agent.loadAIMemory()), 'string');
    assert.equal(typeof (await agent.buildSystemPrompt('x')), 'string');
    assert.equal(typeof (await agent.updateAIMemory('x', 'y')), 'boolean');
  }
});
