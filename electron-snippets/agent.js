'use strict';

/**
 * The memory as the chat of an Electron app uses it: load before a message, update after the answer.
 *
 * Errors never reach the chat. Without a sidecar `loadAIMemory` answers the template, and updates wait in a small queue
 * in this process until it is back. Every update bears an idempotency key, so one that was recorded although its answer
 * got lost is not recorded twice.
 */

const { randomUUID } = require('node:crypto');
const { CHINESE, textsFor } = require('./texts.js');
const { atMost } = require('./waiting.js');

const QUEUE_ENTRIES = 200;
const QUEUE_CHARS = 4 * 1024 * 1024;
const MODEL_CALLS = 20; // a day, that the memory may ask the app's model
const MODEL_MS = 90_000; // the sidecar waits 100 s
const TRIES_IN_FRONT = 2; // then an update goes behind the others, so that one bad update cannot hold up all
const LIMITS = Object.freeze({
  loadMs: 3_000, // a message waits at most so long for its memory ...
  patienceMs: 1_500, // ... after at most so long for a sidecar that is being started
  updateMs: 5_000, // a chat that awaits its update goes on after that; the update stays queued
});

/**
 * @param {{ supervisor?: object, client?: object, limits?: Partial<typeof LIMITS>, log?: (line: string) => void,
 *   locale?: string }} options
 *   one of `supervisor` and `client`; `log` gets kinds of errors and counts, never content;
 *   `locale`: of what is said without a sidecar, by default the supervisor's
 */
function createMemory({ supervisor, client, limits = {}, log = () => {}, locale = supervisor?.locale }) {
  const sidecar = supervisor ?? client;
  if (!sidecar) throw new TypeError('supervisor or client must be given');
  const memory = new Memory(sidecar, { ...LIMITS, ...limits }, log, textsFor(locale));
  supervisor?.on('state', ({ state }) => state === 'running' && memory.flush());
  return {
    load: (options) => memory.load(options),
    loadAIMemory: async (options) => (await memory.load(options)).content,
    updateAIMemory: (userMessage, aiResponse, options) => memory.update(userMessage, aiResponse, options),
    buildSystemPrompt: (base, options) => memory.buildSystemPrompt(base, options),
    contextFor: (message, options) => memory.contextFor(message, options),
    flush: () => memory.flush(),
    get queued() {
      return memory.queued;
    },
  };
}

class Memory {
  constructor(sidecar, limits, log, texts) {
    this._texts = texts;
    this._sidecar = sidecar;
    this._limits = limits;
    this._log = log;
    this._queue = []; // { params, chars, tries, answer }
    this._flushing = undefined;
  }

  /** Updates that wait for the sidecar. */
  get queued() {
    return this._queue.length;
  }

  /** The result of `memory/load`; if it fails, the same shape with the template. */
  async load(options = {}) {
    return (await this._read('memory/load', options)) ?? templateResult(this._texts.template, this.queued);
  }

  /** `base`, then the memory as a block fenced as data, with the rules for its use. */
  async buildSystemPrompt(base, options = {}) {
    const answer = await this._read('memory/systemPrompt', options);
    return [base, answer?.prompt ?? this._texts.promptWithoutMemory].filter(Boolean).join('\n\n');
  }

  /**
   * What the memory holds about this message, as a block to put before it; '' if nothing, or without a sidecar.
   * @param {{ sessionId?: string, project?: string, turns?: string[], maxChars?: number }} [options]
   */
  async contextFor(message, options = {}) {
    const query = String(message);
    if (!query) return '';
    return (await this._read('recall/context', { ...options, query }))?.context ?? '';
  }

  /**
   * Record one exchange. Resolves when it is durable or waits in the queue (`queued: true`); never rejects.
   * @param {{ sessionId?: string, projectPath?: string, importance?: number, idempotencyKey?: string }} [options]
   */
  async update(userMessage, aiResponse, options = {}) {
    const params = { idempotencyKey: randomUUID(), ...options, userMessage: String(userMessage), aiResponse: String(aiResponse) };
    const entry = { params, chars: params.userMessage.length + params.aiResponse.length, tries: 0, answer: undefined };
    this._queue.push(entry);
    this._bound();
    await atMost(this._limits.updateMs, this.flush());
    return entry.answer ?? { recorded: false, queued: true, eventId: null };
  }

  /** Send what waits, in order; stops at the first that cannot be sent now. Never rejects. */
  async flush() {
    // One that is being sent may have looked at the queue before its newest entry: wait for it, then look again.
    while (this._flushing) await this._flushing;
    this._flushing = this._drain().finally(() => (this._flushing = undefined));
    await this._flushing;
  }

  async _drain() {
    while (this._queue.length > 0) {
      const entry = this._queue[0];
      const sent = await this._send(entry);
      if (!sent && entry.tries < TRIES_IN_FRONT) return;
      this._queue = this._queue.filter((other) => other !== entry);
      if (sent) continue;
      this._queue.push(entry);
      return;
    }
  }

  /** Whether an entry is done with: recorded, or refused for good. */
  async _send(entry) {
    try {
      const { updateMs: timeoutMs, patienceMs } = this._limits;
      const options = { timeoutMs, patienceMs };
      entry.answer = await this._sidecar.request('memory/update', entry.params, options);
      return true;
    } catch (error) {
      const keep = error.retryable || error.kind?.startsWith('storage_'); // the disk may be freed
      this._log(`memory/update: ${error.kind ?? error.name}${keep ? ', kept for later' : ''}`);
      if (error.kind !== 'not_running') entry.tries += 1;
      if (keep) return false;
      entry.answer = { recorded: false, eventId: null, reason: error.kind ?? 'internal' };
      return true;
    }
  }

  /** The oldest go first when too much waits. */
  _bound() {
    let chars = this._queue.reduce((sum, entry) => sum + entry.chars, 0);
    while (this._queue.length > QUEUE_ENTRIES || (chars > QUEUE_CHARS && this._queue.length > 1)) {
      chars -= this._queue.shift().chars;
      this._log('memory/update: the queue is full, its oldest entry is dropped');
    }
  }

  async _read(method, options) {
    const { loadMs, patienceMs } = this._limits;
    try {
      return await this._sidecar.request(method, options, { timeoutMs: loadMs, patienceMs, early: true });
    } catch (error) {
      this._log(`${method}: ${error.kind ?? error.name}, going on without the memory`);
      return undefined;
    }
  }
}

/**
 * Let the memory use the app's own model, in the background, to find facts in what the user typed.
 *
 * Give `capabilities` to the handshake and `handlers` to the supervisor:
 * `new SidecarSupervisor({ find, initialize: { capabilities: offer.capabilities }, handlers: offer.handlers })`.
 * `offer.enabled = false` switches it off at once, for a setting of the app.
 *
 * @param {{ complete: (request: { purpose: string, system: string, messages: { role: string, content: string }[],
 *   schema: object, maxTokens: number }) => Promise<string | { text: string, usage?: { inputTokens?: number,
 *   outputTokens?: number } }>, maxCallsPerDay?: number, timeoutMs?: number, today?: () => string }} options
 *   `complete` asks the app's model and returns its text, which should be JSON by `schema`
 */
function offerModel({ complete, maxCallsPerDay = MODEL_CALLS, timeoutMs = MODEL_MS, today = () => new Date().toDateString() }) {
  if (typeof complete !== 'function') throw new TypeError('complete must be a function');
  const offer = {
    enabled: true,
    calls: 0, // on `day`
    day: today(),
    capabilities: { model: { maxCallsPerDay } },
    handlers: {
      'model/complete': async (request) => {
        if (offer.day !== today()) Object.assign(offer, { day: today(), calls: 0 });
        if (!offer.enabled) throw new Error('the model is switched off');
        if (offer.calls >= maxCallsPerDay) throw new Error('the model was called often enough today');
        offer.calls += 1;
        const answer = await inTime(timeoutMs, complete(request));
        return typeof answer === 'string' ? { text: answer } : answer;
      },
    },
  };
  return offer;
}

/**
 * A `complete` for `offerModel` that asks an OpenAI-compatible API, such as `https://…/v1`, with the app's own key:
 * `offerModel({ complete: chatCompletion({ url, model, key: () => key }) })`.
 * It asks for JSON by schema; an API that refuses a field is asked without it.
 *
 * @param {{ url: string, model: string, key?: () => string | Promise<string>, fetch?: typeof globalThis.fetch }} options
 */
function chatCompletion({ url, model, key = () => '', fetch = globalThis.fetch }) {
  let dialect = 0; // that the API took last
  return async ({ purpose, system, messages, schema, maxTokens }) => {
    const dialects = [
      { response_format: { type: 'json_schema', json_schema: { name: purpose, strict: true, schema } }, max_completion_tokens: maxTokens },
      { response_format: { type: 'json_object' }, max_tokens: maxTokens },
      { max_tokens: maxTokens },
    ];
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${await key()}` };
    for (let at = dialect; at < dialects.length; at += 1) {
      const body = JSON.stringify({ model, messages: [{ role: 'system', content: system }, ...messages], ...dialects[at] });
      const answer = await fetch(`${url.replace(/\/+$/, '')}/chat/completions`, { method: 'POST', headers, body });
      if (answer.ok) {
        dialect = at;
        const { choices, usage } = await answer.json();
        const spent = { inputTokens: usage?.prompt_tokens ?? 0, outputTokens: usage?.completion_tokens ?? 0 };
        return { text: choices[0].message.content, usage: spent };
      }
      if (![400, 404, 415, 422].includes(answer.status)) throw new Error(`the model answered ${answer.status}`);
    }
    throw new Error('the model refused the request');
  };
}

function inTime(ms, promise) {
  let timer;
  const late = new Promise((_resolve, reject) => (timer = setTimeout(() => reject(new Error('too late')), ms)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function templateResult(template, pending) {
  return {
    content: template,
    document: template,
    documentSha256: '',
    digest: '',
    source: 'template',
    stale: true,
    pending,
    throughSeq: 0,
    updatedAt: null,
    devices: [],
    omitted: [],
  };
}

module.exports = {
  createMemory,
  offerModel,
  chatCompletion,
  TEMPLATE: CHINESE.template,
  PROMPT_WITHOUT_MEMORY: CHINESE.promptWithoutMemory,
};
