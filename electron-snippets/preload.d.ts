// `window.xiaobaiMemory`, as preload.js exposes it. In a page: `import type {} from './electron-snippets/preload'`.

import type { SidecarErrorJson } from './errors';
import type { Snapshot } from './snapshot';
import type { AccountJson, CloudJson, Methods } from './types';

/** Electron keeps only the text of an error that crosses a process, so an answer carries the error as a value. */
export type Answer<Value> = { ok: true; value: Value } | { ok: false; error: SidecarErrorJson };
type Params<M extends keyof Methods, Names extends keyof Methods[M]['params']> = Pick<Methods[M]['params'], Names>;
type Result<M extends keyof Methods> = Promise<Answer<Methods[M]['result']>>;

/** The payload of each event. */
export interface MemoryEvents {
  'state-changed': Snapshot;
  changed: { nextOffset: number };
  'sync-changed': CloudJson;
  progress: { token: string; value: { kind: 'begin' | 'report' | 'end'; title: 'sync'; done: number; total: number } };
  'auth-changed': { account: AccountJson };
  'token-needed': Record<string, never>;
}

export interface XiaobaiMemory {
  state(): Promise<Answer<Snapshot>>;
  retry(): Promise<Answer<Snapshot>>;
  load(params?: Params<'memory/load', 'scope' | 'maxChars' | 'waitMs'>): Result<'memory/load'>;
  status(): Result<'sync/status'>;
  sync(params?: Params<'sync/now', 'timeoutMs'>): Result<'sync/now'>;
  account(): Result<'auth/status'>;
  sendCode(params: Params<'auth/start', 'phone' | 'email'>): Result<'auth/start'>;
  verifyCode(params: Params<'auth/verify', 'phone' | 'email' | 'code'>): Result<'auth/verify'>;
  login(params: Params<'auth/password', 'phone' | 'email' | 'password'>): Result<'auth/password'>;
  logout(): Result<'auth/logout'>;
  facts(params?: Params<'understanding/facts', 'status' | 'project' | 'query' | 'limit'>): Result<'understanding/facts'>;
  reviewFacts(params?: Params<'understanding/review', 'limit'>): Result<'understanding/review'>;
  explainFact(params: Params<'understanding/explain', 'factId'>): Result<'understanding/explain'>;
  confirmFact(params: Params<'understanding/confirm', 'factId'>): Result<'understanding/confirm'>;
  rejectFact(params: Params<'understanding/reject', 'factId'>): Result<'understanding/reject'>;
  retractFact(params: Params<'understanding/retract', 'factId'>): Result<'understanding/retract'>;
  /** Listen to an event; returns a function that stops listening. */
  on<Name extends keyof MemoryEvents>(name: Name, listener: (payload: MemoryEvents[Name]) => void): () => void;
}

declare global {
  interface Window {
    xiaobaiMemory: XiaobaiMemory;
  }
}
