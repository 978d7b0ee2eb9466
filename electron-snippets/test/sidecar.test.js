'use strict';

/** The whole way with the real sidecar: XIAOBAI_MEMORY_COMMAND, else `xiaobai-memory serve` of this checkout. */

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { once } = require('node:events');
const { test } = require('node:test');

const { createAgent } = require('../agent.js');
const { SidecarSupervisor } = require('../supervisor.js');
const { sidecar, temporaryHome } = require('../testing/programs.js');

async function phase(supervisor, wanted) {
  while (supervisor.state.phase !== wanted) {
    assert.notEqual(supervisor.state.phase, 'template', supervisor.state.reason);
    await once(supervisor, 'state');
  }
}

/** A supervised sidecar in a home of its own, and the agent on it. */
function home(t) {
  const { env, file, remove } = temporaryHome();
  const start = () => {
    const supervisor = new SidecarSupervisor({ command: sidecar(), env });
    const agent = createAgent({ sidecar: supervisor, timeoutMs: 20_000 });
    t.after(() => supervisor.stop());
    supervisor.start();
    return { supervisor, agent };
  };
  t.after(remove);
  return { file, start };
}

test('handshake, health and version', async (t) => {
  const { supervisor } = home(t).start();
  await phase(supervisor, 'ready');
  assert.match(supervisor.state.serverVersion, /^\d+\.\d+/);
  assert.ok(await supervisor.call('sync/status'));
});

test('an acknowledged update is in the next load and in the prompt', async (t) => {
  const { agent } = home(t).start();
  assert.match(await agent.loadAIMemory(), /# AI 对话记忆/);
  assert.equal(await agent.updateAIMemory('你好，我叫晓力😀', '很高兴认识你，晓力！'), true);
  const content = await agent.loadAIMemory();
  assert.match(content, /用户问：你好，我叫晓力😀/);
  assert.match(content, /AI 答：很高兴认识你，晓力！/);
  const prompt = await agent.buildSystemPrompt('你是小白AI。');
  assert.ok(prompt.startsWith('你是小白AI。'));
  assert.match(prompt, /晓力/);
});

test('what was acknowledged is there after a graceful stop, once, also in the file', async (t) => {
  const { start, file } = home(t);
  const first = start();
  for (let n = 0; n < 10; n += 1) assert.equal(await first.agent.updateAIMemory(`问题${n}号`, `回答${n}号`), true);
  await first.supervisor.stop();
  const second = start();
  const content = await second.agent.loadAIMemory();
  for (let n = 0; n < 10; n += 1) assert.equal(content.split(`问题${n}号`).length, 2, `问题${n}号`);
  await second.supervisor.stop();
  assert.match(fs.readFileSync(file, 'utf8'), /问题9号/);
});

test('what was acknowledged is there after kill -9, and the supervisor starts the next one', async (t) => {
  const { supervisor, agent } = home(t).start();
  await phase(supervisor, 'ready');
  for (let n = 0; n < 10; n += 1) assert.equal(await agent.updateAIMemory(`问题${n}号`, '好'), true);
  process.kill(supervisor.client.pid, 'SIGKILL');
  await phase(supervisor, 'restarting');
  const late = agent.updateAIMemory('迟到的问题', '好');
  assert.equal(await late, false);
  await phase(supervisor, 'ready');
  await agent.deliverBacklog();
  while (agent.waiting() > 0) await once(supervisor, 'state');
  const content = await agent.loadAIMemory();
  for (let n = 0; n < 10; n += 1) assert.equal(content.split(`问题${n}号`).length, 2, `问题${n}号`);
  assert.match(content, /迟到的问题/);
});

test('the same idempotency key is recorded once', async (t) => {
  const { supervisor, agent } = home(t).start();
  const update = { userMessage: '只记一次', aiResponse: '好', idempotencyKey: 'k-1' };
  const first = await supervisor.call('memory/update', update);
  const again = await supervisor.call('memory/update', update);
  assert.equal(again.eventId, first.eventId);
  assert.equal((await agent.loadAIMemory()).split('只记一次').length, 2);
});

test('a long answer and an odd one are accepted', async (t) => {
  const { agent } = home(t).start();
  assert.equal(await agent.updateAIMemory('长'.repeat(33_000), '答'.repeat(33_000)), true);
  assert.equal(await agent.updateAIMemory('空\0字符 😀'.slice(0, 6), ''), true);
});

test('bad parameters and unknown methods are told', async (t) => {
  const { supervisor } = home(t).start();
  await assert.rejects(supervisor.call('memory/load', { waitMs: 'soon' }), { code: -32602, field: 'waitMs' });
  await assert.rejects(supervisor.call('memory/laod'), { code: -32601 });
});

test('closing while ten updates are under way loses none that was answered', async (t) => {
  const { start } = home(t);
  const first = start();
  await phase(first.supervisor, 'ready');
  const updates = Array.from({ length: 10 }, (_, n) => first.agent.updateAIMemory(`并发${n}号`, '好'));
  const stopping = first.supervisor.client.close();
  const outcomes = await Promise.all(updates);
  await stopping;
  assert.equal(first.supervisor.client?.exit?.code ?? 0, 0);
  await first.supervisor.stop();
  const content = await start().agent.loadAIMemory();
  outcomes.forEach((safe, n) => safe && assert.equal(content.split(`并发${n}号`).length, 2, `并发${n}号`));
});
