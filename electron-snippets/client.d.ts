import { EventEmitter } from 'node:events';
import type { ErrorKind, InitializeJson, MethodName, Methods } from './types';

export * from './types';

export const PROTOCOL_VERSION: number;

/** Kinds that arise on this side of the pipe, besides those the sidecar answers. */
export type LocalErrorKind =
  | 'sidecar_not_found'
  | 'spawn_failed'
  | 'sidecar_exited'
  | 'not_running'
  | 'timeout'
  | 'version_mismatch'
  | 'overloaded'
  | 'protocol_error';

export interface SidecarErrorJson {
  code: number;
  kind: ErrorKind | LocalErrorKind;
  message: string;
  hint: string;
  retryable: boolean;
  field?: string;
  /** seconds */
  retryAfter?: number;
}

export class SidecarError extends Error implements SidecarErrorJson {
  code: number;
  kind: ErrorKind | LocalErrorKind;
  hint: string;
  retryable: boolean;
  field?: string;
  retryAfter?: number;
  toJSON(): SidecarErrorJson;
}

export interface RequestOptions {
  /** 0 waits without limit */
  timeoutMs?: number;
  signal?: AbortSignal;
}

export interface ClientOptions {
  command: string[];
  /** replaces the whole environment; by default that of this process */
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  requestTimeoutMs?: number;
  graceMs?: number;
  /** bytes of the longest answer that is kept */
  lineLimit?: number;
}

export type InitializeParams = Methods['initialize']['params'];

/** Methods all of whose parameters may be left out. */
type Optional = { [M in MethodName]: {} extends Methods[M]['params'] ? M : never }[MethodName];

export interface Requests<Options> {
  request<M extends Optional>(method: M, params?: Methods[M]['params'], options?: Options): Promise<Methods[M]['result']>;
  request<M extends MethodName>(method: M, params: Methods[M]['params'], options?: Options): Promise<Methods[M]['result']>;
}

export interface SidecarClient extends Requests<RequestOptions> {}
export class SidecarClient extends EventEmitter {
  constructor(options: ClientOptions);
  readonly pid: number | undefined;
  readonly state: 'new' | 'running' | 'closing' | 'ended';
  readonly stderrTail: string[];
  start(options?: { handshake?: boolean | InitializeParams; timeoutMs?: number }): Promise<InitializeJson | undefined>;
  handshake(params?: InitializeParams, options?: RequestOptions): Promise<InitializeJson>;
  notify(method: string, params?: object): void;
  close(): Promise<{ code: number | null; signal: string | null }>;
}

export interface FindOptions {
  setting?: string | string[];
  resourcesPath?: string;
  env?: NodeJS.ProcessEnv;
  platform?: string;
}
export function findSidecar(where?: FindOptions): string[];
