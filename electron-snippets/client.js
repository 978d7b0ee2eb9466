'use strict';

/**
 * One sidecar process and a JSON-RPC 2.0 client for it: newline-delimited JSON on its standard input and output.
 *
 * A client is one process and lives once; `supervisor.js` makes a new one when a process dies. Nothing here can end the
 * app: a broken pipe, a dying sidecar or a forgotten `await` become rejected promises, never uncaught exceptions.
 *
 * The sidecar may send requests too, but only for what `initialize` offered: `handle(method, answer)` registers who answers.
 *
 * Events: 'notification' ({ method, params }), every notification also under its method name ('memory/changed'),
 * 'log' (one line of the sidecar's stderr), 'protocolError' (SidecarError), 'exit' ({ code, signal, error }).
 */

const { spawn } = require('node:child_process');
const { EventEmitter } = require('node:events');
const { SidecarError } = require('./errors.js');
const { LineSplitter } = require('./lines.js');
const { findSidecar } = require('./find.js');

const PROTOCOL_VERSION = 1;
const REQUEST_TIMEOUT_MS = 65_000; // the sidecar gives up after 60 s itself and tells why, so it gets to speak first
const GRACE_MS = 2_000; // between closing stdin, SIGTERM and SIGKILL; the sidecar promises to leave within it
const FRAME_LIMIT = 8 * 1024 * 1024; // bytes of a request; the sidecar refuses more without being able to say whose it was
const LINE_LIMIT = 64 * 1024 * 1024; // bytes of an answer; a whole memory is far below
const UNSENT_LIMIT = 32 * 1024 * 1024; // bytes a sidecar that does not read may make us hold
const LOG_LINE_LIMIT = 64 * 1024;
const LOG_TAIL = 20; // lines of stderr kept to explain an exit
const LAST_WORDS_MS = 500; // after an exit, for output still in the pipe; a grandchild may hold the pipe open for ever

class SidecarClient extends EventEmitter {
  /**
   * @param {{ command: string[], env?: NodeJS.ProcessEnv, cwd?: string, requestTimeoutMs?: number, graceMs?: number,
   *   lineLimit?: number }} options `env` replaces the whole environment when it is given
   */
  constructor({ command, env, cwd, requestTimeoutMs = REQUEST_TIMEOUT_MS, graceMs = GRACE_MS, lineLimit = LINE_LIMIT }) {
    super();
    if (!Array.isArray(command) || command.length === 0) throw new TypeError('command must be an array: [executable, ...arguments]');
    this.command = command;
    this.options = { env, cwd };
    this.requestTimeoutMs = requestTimeoutMs;
    this.graceMs = graceMs;
    this.state = 'new'; // new -> running -> closing -> ended
    this.stderrTail = [];
    this._pending = new Map();
    this._handlers = new Map();
    this._nextId = 1;
    this._lines = new LineSplitter(lineLimit);
    this._logLines = new LineSplitter(LOG_LINE_LIMIT);
    this._exited = new Promise((resolve) => (this._resolveExited = resolve));
  }

  get pid() {
    return this._child?.pid;
  }

  /**
   * Start the process. With `handshake` (true, or the params of `initialize`), also agree on the version and ask for
   * notifications; the answer of `initialize` is returned then.
   */
  async start({ handshake = false, timeoutMs } = {}) {
    if (this.state !== 'new') throw new SidecarError('not_running', 'a client is started once; make a new one');
    await this._spawn();
    if (!handshake) return undefined;
    try {
      return await this.handshake(handshake === true ? {} : handshake, { timeoutMs });
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Call `initialize` and compare versions. Fails with kind `version_mismatch` that names both. */
  async handshake(params = {}, options = {}) {
    const ours = { protocolVersion: PROTOCOL_VERSION, parentPid: process.pid, clientInfo: { name: 'electron-snippets' } };
    const answer = await this.request('initialize', { ...ours, ...params }, options);
    if (answer?.protocolVersion === PROTOCOL_VERSION) return answer;
    const { name = 'the sidecar', version = 'of unknown version' } = answer?.serverInfo ?? {};
    throw new SidecarError(
      'version_mismatch',
      `this app speaks protocol ${PROTOCOL_VERSION}, ${name} ${version} speaks protocol ${answer?.protocolVersion}`,
      { hint: `Update ${answer?.protocolVersion > PROTOCOL_VERSION ? 'the app' : 'xiaobai-memory'}, then start again.` },
    );
  }

  /**
   * @param {string} method
   * @param {object} [params] by name
   * @param {{ timeoutMs?: number, signal?: AbortSignal }} [options] `timeoutMs: 0` waits without limit
   * @returns {Promise<any>} the result; rejects with SidecarError
   */
  request(method, params, { timeoutMs = this.requestTimeoutMs, signal } = {}) {
    const answer = new Promise((resolve, reject) => this._ask(method, params, { timeoutMs, signal, resolve, reject }));
    answer.catch(() => {}); // awaiting it still raises; a forgotten await must not end the app
    return answer;
  }

  /** Answer requests of the sidecar: `answer(params)` returns the result, or a promise of it. */
  handle(method, answer) {
    this._handlers.set(method, answer);
  }

  /** Tell the sidecar something that is not answered. */
  notify(method, params) {
    if (this._writable()) this._child.stdin.write(encode({ jsonrpc: '2.0', method, params }));
  }

  /**
   * Leave: the end of stdin (the sidecar finishes what it accepted), then SIGTERM, then SIGKILL. Never rejects.
   * @returns {Promise<{ code: number | null, signal: string | null } | undefined>}
   */
  close() {
    if (this.state === 'new') this._end({ code: null, signal: null });
    if (this.state === 'running') {
      this.state = 'closing';
      this._child.stdin.end();
      this._killTimer = setTimeout(() => {
        this._child.kill('SIGTERM');
        this._killTimer = setTimeout(() => this._child.kill('SIGKILL'), this.graceMs);
      }, this.graceMs);
    }
    return this._exited;
  }

  // --- the process -------------------------------------------------------------------------------------------

  _spawn() {
    const [file, ...args] = this.command;
    const { env = process.env, cwd } = this.options;
    return new Promise((resolve, reject) => {
      const failed = (cause) => {
        const error = new SidecarError('spawn_failed', `the sidecar could not be started: ${cause.message}`, {
          hint: `Check that ${file} exists and may be executed.`,
          cause,
        });
        this._end({ code: null, signal: null, error });
        reject(error);
      };
      try {
        // No shell, no window, and not detached: the sidecar must not outlive the app.
        this._child = spawn(file, args, { env, cwd, windowsHide: true, stdio: ['pipe', 'pipe', 'pipe'] });
      } catch (cause) {
        failed(cause);
        return;
      }
      this.state = 'running';
      this._child.once('spawn', resolve);
      this._child.on('error', (cause) => (this._child.pid === undefined ? failed(cause) : undefined));
      this._listen(this._child);
    });
  }

  _listen(child) {
    child.stdin.on('error', () => this.close()); // EPIPE: a sidecar that cannot hear us is of no use
    for (const stream of [child.stdout, child.stderr]) stream.on('error', () => {}); // 'exit' tells what matters
    child.stdout.on('data', (chunk) => {
      for (const line of this._lines.push(chunk)) this._received(line);
    });
    child.stderr.on('data', (chunk) => {
      for (const { bytes } of this._logLines.push(chunk)) this._logged(bytes.toString('utf8').trimEnd());
    });
    child.once('exit', (code, signal) => {
      const end = () => this._end({ code, signal, error: this._exitError(code, signal) });
      const patience = setTimeout(end, LAST_WORDS_MS);
      child.once('close', () => {
        clearTimeout(patience);
        end();
      });
    });
  }

  _logged(line) {
    this.stderrTail.push(line);
    if (this.stderrTail.length > LOG_TAIL) this.stderrTail.shift();
    this._tell('log', line);
  }

  /** What the sidecar said last ("error: …", "hint: …") explains its exit better than a number. */
  _exitError(code, signal) {
    const said = (word) => this.stderrTail.findLast((line) => line.startsWith(`${word}: `))?.slice(word.length + 2);
    const how = signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
    const why = code === 0 ? undefined : said('error');
    return new SidecarError('sidecar_exited', `the sidecar ${how}${why ? `: ${why}` : ''}`, {
      hint: (code === 0 ? undefined : said('hint')) ?? 'Start it again; what was acknowledged is kept.',
      retryable: true,
    });
  }

  _end(how) {
    if (this.state === 'ended') return;
    this.state = 'ended';
    clearTimeout(this._killTimer);
    const error = how.error ?? notRunning();
    for (const call of [...this._pending.values()]) call.fail(error);
    this._child?.stdout?.destroy();
    this._child?.stderr?.destroy();
    this._resolveExited({ code: how.code, signal: how.signal });
    this._tell('exit', how);
  }

  // --- calls --------------------------------------------------------------------------------------------------

  _writable() {
    return this.state === 'running' && this._child.stdin.writable;
  }

  _ask(method, params, { timeoutMs, signal, resolve, reject }) {
    if (signal?.aborted) return reject(cancelled(method, signal));
    if (!this._writable()) return reject(notRunning());
    const id = this._nextId++;
    const refusal = this._send({ jsonrpc: '2.0', id, method, params });
    if (refusal) return reject(refusal);
    const giveUp = (error) => {
      call.fail(error);
      this.notify('$/cancelRequest', { id });
    };
    const onAbort = () => giveUp(cancelled(method, signal));
    const timer = timeoutMs > 0 ? setTimeout(() => giveUp(timedOut(method, timeoutMs)), timeoutMs) : undefined;
    const settled = () => {
      this._pending.delete(id);
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    const call = {
      done: (result) => (settled(), resolve(result)),
      fail: (error) => (settled(), reject(error)),
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    this._pending.set(id, call);
    return undefined;
  }

  /** Write a request; what is returned is the reason why that was not done. */
  _send(message) {
    let line;
    try {
      line = encode(message);
    } catch (cause) {
      return new SidecarError('invalid_input', `${message.method}: params are not JSON: ${cause.message}`, { cause });
    }
    if (line.length > FRAME_LIMIT) {
      return new SidecarError('too_large', `${message.method}: a request is at most 8 MiB`, { hint: 'Send less at once.' });
    }
    if (this._child.stdin.writableLength + line.length > UNSENT_LIMIT) {
      const hint = 'Wait for answers before sending more.';
      return new SidecarError('overloaded', 'the sidecar does not keep up', { hint, retryable: true });
    }
    this._child.stdin.write(line);
    return undefined;
  }

  _received({ bytes, oversized }) {
    if (oversized) {
      const error = new SidecarError('too_large', 'an answer of the sidecar is too large', { hint: 'Ask for less: maxChars, limit.' });
      const id = /"id":\s*(\d+)/.exec(bytes.toString('latin1'))?.[1]; // the sidecar writes the id before the result
      return this._failed(id === undefined ? null : Number(id), error);
    }
    if (bytes.length === 0) return undefined;
    let message;
    try {
      message = JSON.parse(bytes.toString('utf8'));
    } catch (cause) {
      return this._tell('protocolError', new SidecarError('protocol_error', 'the sidecar wrote a line that is not JSON', { cause }));
    }
    for (const one of Array.isArray(message) ? message : [message]) this._handle(Object(one));
    return undefined;
  }

  _handle(message) {
    if (typeof message.method === 'string' && message.id !== undefined) {
      this._answer(message);
    } else if (typeof message.method === 'string') {
      this._tell('notification', { method: message.method, params: message.params });
      // Only names with a slash: a notification called 'error' or 'exit' must not pass for an event of ours.
      if (message.method.includes('/')) this._tell(message.method, message.params);
    } else if (message.error !== undefined) {
      this._failed(message.id, SidecarError.fromAnswer(message.error));
    } else {
      this._pending.get(message.id)?.done(message.result); // else: a late response
    }
  }

  /** A request of the sidecar. It always gets an answer; what the error says stays in this process. */
  async _answer({ id, method, params }) {
    const handler = this._handlers.get(method);
    let answer = { error: { code: -32601, message: `this app does not answer ${method}` } };
    try {
      if (handler) answer = { result: (await handler(params)) ?? null };
    } catch {
      answer = { error: { code: -32000, message: `${method} failed` } };
    }
    if (!this._writable() || !this._send({ jsonrpc: '2.0', id, ...answer })) return;
    this._send({ jsonrpc: '2.0', id, error: { code: -32000, message: `the result of ${method} cannot be sent` } });
  }

  /** An error without an id is about a request the sidecar could not read: ours, if only one is under way. */
  _failed(id, error) {
    const alone = this._pending.size === 1 ? this._pending.values().next().value : undefined;
    const call = id === null || id === undefined ? alone : this._pending.get(id);
    if (call) call.fail(error);
    else if (id === null || id === undefined) this._tell('protocolError', error);
  }

  /** Emit without letting an exception of a listener tear the stream of answers or end the app. */
  _tell(event, value) {
    try {
      this.emit(event, value);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}

/** One line. Half a surrogate pair (text cut with `slice`) is no JSON text for the sidecar; it becomes U+FFFD here. */
function encode(message) {
  const wellFormed = (_key, value) => (typeof value === 'string' ? value.toWellFormed() : value);
  return Buffer.from(`${JSON.stringify(message, wellFormed)}\n`, 'utf8');
}

function notRunning() {
  return new SidecarError('not_running', 'the sidecar is not running', { hint: 'Start it first.', retryable: true });
}

function timedOut(method, ms) {
  const hint = 'Try again; what was acknowledged is kept.';
  return new SidecarError('timeout', `${method} was not answered within ${ms} ms`, { hint, retryable: true });
}

function cancelled(method, signal) {
  return new SidecarError('cancelled', `${method} was cancelled`, { hint: 'Call again if it is still wanted.', cause: signal.reason });
}

module.exports = { SidecarClient, SidecarError, LineSplitter, findSidecar, PROTOCOL_VERSION };
