'use strict';

/**
 * Keeps one sidecar running for the app and reports its state.
 *
 *   stopped -> starting -> running -> (it dies) -> waiting -> starting -> ...
 *                                                     \-> template   after 5 restarts in 3 minutes, or at once where
 *                                                                    trying again cannot help; `retry()` starts over
 *
 * In `template` the chat goes on without a memory. Nothing here throws at the app: `start`, `retry` and `stop` never
 * reject, and only `request` answers with errors.
 *
 * Events: 'state' (a snapshot), and of the running sidecar 'notification' and 'log'.
 */

const { EventEmitter } = require('node:events');
const { SidecarClient, SidecarError } = require('./client.js');
const { CHINESE, textsFor } = require('./texts.js');

const POLICY = Object.freeze({
  firstDelayMs: 250,
  longestDelayMs: 30_000,
  restarts: 5, // at most so many ...
  windowMs: 180_000, // ... within this time
  stableMs: 60_000, // a run this long makes the next delay the first one again
  handshakeMs: 15_000, // a virus scanner may hold up a first start
  healthEveryMs: 30_000,
  healthTimeoutMs: 10_000,
  healthMisses: 2, // after waking from sleep one call may run out of time without anything being wrong
});

const HOPELESS = new Set(['sidecar_not_found', 'version_mismatch']);

const REAL_TIME = Object.freeze({
  now: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer),
  random: Math.random,
});

class SidecarSupervisor extends EventEmitter {
  /**
   * @param {{ command?: string[], find?: () => string[], env?: NodeJS.ProcessEnv, initialize?: object, handlers?: object,
   *   policy?: Partial<typeof POLICY>, time?: typeof REAL_TIME, createClient?: (options: object) => SidecarClient }} options
   *   `find` is called before every start, so an update of the app may move the executable; `initialize` are params of
   *   the handshake (`deviceId`, `locale`, `clientInfo`, `capabilities`); `handlers` answer requests of the sidecar, by
   *   method
   */
  constructor({ command, find, env, initialize = {}, handlers = {}, policy = {}, time = REAL_TIME, createClient }) {
    super();
    if (!command && !find) throw new TypeError('command or find must be given');
    this._find = find ?? (() => command);
    this._env = env;
    this._initialize = initialize;
    this._handlers = handlers;
    this._policy = { ...POLICY, ...policy };
    this._time = time;
    this._createClient = createClient ?? ((options) => new SidecarClient(options));
    this._restarts = []; // when, within the window
    this._failures = 0; // in a row
    this._waiters = new Set();
    this._state = { state: 'stopped' };
  }

  /** The state of the sidecar; may be sent to a renderer as it is. */
  get snapshot() {
    const { state, error, retryInMs, server } = this._state;
    const restarts = this._recentRestarts().length;
    const { states } = textsFor(this.locale);
    const message = (state === 'template' && states[error?.kind]) || states[state];
    return { state, message, restarts, retryInMs, error: error?.toJSON(), server };
  }

  /** The app's locale, in which the messages for the user are. */
  get locale() {
    return this._initialize.locale;
  }

  get state() {
    return this._state.state;
  }

  /** Start; resolves with the snapshot as soon as the sidecar runs or is known not to. */
  async start() {
    if (this.state === 'stopped' || this.state === 'template') this._launch();
    await this._settled(['running', 'template', 'stopped']);
    return this.snapshot;
  }

  /** Start again, for a button in the template mode. A wait for the next restart is cut short. */
  async retry() {
    if (this.state === 'template' || this.state === 'waiting') {
      this._restarts = [];
      this._failures = 0;
      this._launch();
    }
    return this.start();
  }

  /** End the sidecar gracefully; nothing restarts it until `start`. */
  async stop() {
    const client = this._client;
    this._client = undefined; // its exit is no failure
    this._clearTimers();
    if (client) this._ending = client.close();
    this._become({ state: 'stopped' });
    await this._ending;
  }

  /**
   * Call a method. While the sidecar starts or restarts the call waits `patienceMs` for it.
   * @param {string} method
   * @param {object} [params]
   * @param {{ timeoutMs?: number, signal?: AbortSignal, patienceMs?: number, early?: boolean }} [options]
   *   `early`: do not wait for the handshake; for reads that should be answered while the sidecar still opens its files
   */
  request(method, params, options = {}) {
    const answer = this._request(method, params, options);
    answer.catch(() => {}); // as in the client: a forgotten await must not end the app
    return answer;
  }

  async _request(method, params, { patienceMs = 5_000, early = false, ...options }) {
    const ready = () => this.state === 'running' || (early && this.state === 'starting' && this._client?.state === 'running');
    if (!ready() && (this.state === 'starting' || this.state === 'waiting')) {
      await this._until(() => ready() || this.state === 'template' || this.state === 'stopped', patienceMs);
    }
    if (!ready()) throw this._unavailable();
    return this._client.request(method, params, options);
  }

  // --- one life of the sidecar ---------------------------------------------------------------------------------

  async _launch() {
    this._clearTimers();
    this._become({ state: 'starting' });
    const attempt = this._state;
    await this._ending; // two sidecars must not share one data directory
    if (this._state !== attempt) return;
    let client;
    try {
      client = this._createClient({ command: this._find(), env: this._env });
      this._client = client;
      this._attach(client);
      for (const [method, answer] of Object.entries(this._handlers)) client.handle(method, answer);
      await client.start();
      this._wake();
      const server = await client.handshake(this._initialize, { timeoutMs: this._policy.handshakeMs });
      if (this._client !== client) return;
      this._startedAt = this._time.now();
      this._become({ state: 'running', server: { ...server.serverInfo, protocolVersion: server.protocolVersion } });
      this._watchHealth(client, 0);
    } catch (cause) {
      const error = cause instanceof SidecarError ? cause : new SidecarError('spawn_failed', cause.message, { cause });
      this._failed(client, error);
    }
  }

  _attach(client) {
    client.on('notification', (notification) => this._client === client && this._tell('notification', notification));
    client.on('log', (line) => this._tell('log', line));
    client.on('protocolError', (error) => this._tell('log', `${error.kind}: ${error.message}`));
    client.once('exit', ({ error }) => this.state === 'running' && this._failed(client, error));
  }

  /** Whatever the failure of the current client: end it, then wait for the next try or give up. */
  _failed(client, error) {
    if (this._client !== client || this.state === 'stopped') return;
    this._client = undefined;
    this._clearTimers();
    const lived = this._startedAt === undefined ? 0 : this._time.now() - this._startedAt;
    this._startedAt = undefined;
    if (lived >= this._policy.stableMs) this._failures = 0;
    this._ending = client?.close();
    const hopeless = HOPELESS.has(error?.kind);
    if (hopeless || this._recentRestarts().length >= this._policy.restarts) {
      this._become({ state: 'template', error });
      return;
    }
    const delay = this._delay(this._failures++);
    this._become({ state: 'waiting', error, retryInMs: Math.round(delay) });
    this._timer = this._time.setTimeout(() => {
      this._restarts = [...this._recentRestarts(), this._time.now()];
      this._launch();
    }, delay);
  }

  /** Doubling, capped, and between half and the whole of that, so that several apps do not restart in step. */
  _delay(failures) {
    const { firstDelayMs, longestDelayMs } = this._policy;
    return Math.min(longestDelayMs, firstDelayMs * 2 ** failures) * (0.5 + this._time.random() / 2);
  }

  _recentRestarts() {
    const since = this._time.now() - this._policy.windowMs;
    return this._restarts.filter((when) => when > since);
  }

  /** A sidecar that no longer answers is as good as dead. Any answer, even an error, is a sign of life. */
  _watchHealth(client, misses) {
    this._healthTimer = this._time.setTimeout(async () => {
      const missed = await client.request('sync/status', {}, { timeoutMs: this._policy.healthTimeoutMs }).then(
        () => false,
        (error) => error.kind === 'timeout',
      );
      if (this._client !== client || this.state !== 'running') return;
      if (!missed) this._watchHealth(client, 0);
      else if (misses + 1 < this._policy.healthMisses) this._watchHealth(client, misses + 1);
      else this._failed(client, new SidecarError('timeout', 'the sidecar no longer answers', { retryable: true }));
    }, this._policy.healthEveryMs);
  }

  _clearTimers() {
    this._time.clearTimeout(this._timer);
    this._time.clearTimeout(this._healthTimer);
  }

  // --- states --------------------------------------------------------------------------------------------------

  _become(state) {
    this._state = state;
    this._tell('state', this.snapshot);
    this._wake();
  }

  _wake() {
    for (const look of [...this._waiters]) look();
  }

  _settled(states) {
    return this._until(() => states.includes(this.state));
  }

  /** Resolves when `reached()` holds, or after `ms` if that is given. */
  _until(reached, ms) {
    if (reached()) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        this._waiters.delete(look);
        this._time.clearTimeout(timer);
        resolve();
      };
      const look = () => reached() && done();
      const timer = ms === undefined ? undefined : this._time.setTimeout(done, ms);
      this._waiters.add(look);
    });
  }

  _unavailable() {
    const hint = this.state === 'template' ? 'Call retry() or restart the app.' : 'Try again in a moment.';
    return new SidecarError('not_running', `the memory is not available (${this.state})`, {
      hint: this._state.error?.hint || hint,
      retryable: true,
      cause: this._state.error,
    });
  }

  _tell(event, value) {
    try {
      this.emit(event, value);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}

module.exports = { SidecarSupervisor, POLICY, MESSAGES: CHINESE.states };
