'use strict';

/**
 * One error class for everything that can go wrong with the sidecar. Programs switch on `kind`, people read `message`
 * and `hint`, and `retryable` says whether the same call may succeed later.
 *
 * Errors the sidecar answers keep its own code and kind. The ones below arise on this side of the pipe; their codes
 * stay clear of those of the sidecar (-32010 to -32059) and of JSON-RPC.
 */

const LOCAL_CODES = Object.freeze({
  sidecar_not_found: -32060,
  spawn_failed: -32061,
  sidecar_exited: -32062,
  not_running: -32063,
  timeout: -32064,
  version_mismatch: -32065,
  overloaded: -32066,
  protocol_error: -32067,
  cancelled: -32800, // the sidecar uses the same number for a cancelled call
  too_large: -32602,
  invalid_input: -32602,
});

class SidecarError extends Error {
  /**
   * @param {string} kind stable word to switch on
   * @param {string} message what happened
   * @param {{ code?: number, hint?: string, retryable?: boolean, field?: string, retryAfter?: number, cause?: unknown }} [more]
   */
  constructor(kind, message, more = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = 'SidecarError';
    this.kind = kind;
    this.code = more.code ?? LOCAL_CODES[kind] ?? -32603;
    this.hint = more.hint ?? '';
    this.retryable = more.retryable ?? false;
    if (more.field !== undefined) this.field = more.field;
    if (more.retryAfter !== undefined) this.retryAfter = more.retryAfter; // seconds
  }

  /** The `error` member of a JSON-RPC answer as an error. */
  static fromAnswer(error) {
    const { code, message, data } = Object(error);
    const { kind, ...more } = Object(data);
    return new SidecarError(kind ?? 'internal', String(message ?? 'the sidecar answered with an error'), { ...more, code });
  }

  /** What may cross to a renderer: `Error` objects lose their members on the way. */
  toJSON() {
    const { code, kind, message, hint, retryable, field, retryAfter } = this;
    return { code, kind, message, hint, retryable, field, retryAfter };
  }
}

module.exports = { SidecarError, LOCAL_CODES };
