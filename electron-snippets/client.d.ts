import { EventEmitter } from 'node:events';
import type { InitializeJson, MethodName, Methods } from './types';

export * from './errors';
export * from './types';

export const PROTOCOL_VERSION: number;

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
  /** Answer requests of the sidecar, for what `initialize` offered. */
  handle(method: string, answer: (params: any) => unknown): void;
  notify(method: string, params?: object): void;
  close(): Promise<{ code: number | null; signal: string | null }>;
}

export interface FindOptions {
  setting?: string | string[];
  resourcesPath?: string;
  env?: NodeJS.ProcessEnv;
  platform?: string;
}
/** The command that starts the sidecar: executable and arguments, as `ClientOptions.command` takes it. */
export function findSidecar(where?: FindOptions): string[];

/** Splits a stream of bytes into lines, as the client reads the sidecar's output. */
export class LineSplitter {
  /** bytes of the longest line that is kept */
  constructor(limit: number);
  push(chunk: Buffer): { bytes: Buffer; oversized: boolean }[];
}
