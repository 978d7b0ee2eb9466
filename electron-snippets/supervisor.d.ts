import { EventEmitter } from 'node:events';
import type { ClientOptions, InitializeParams, RequestOptions, Requests, SidecarClient } from './client';
import type { Snapshot, SupervisorState } from './snapshot';

export * from './snapshot';

export interface Policy {
  firstDelayMs: number;
  longestDelayMs: number;
  restarts: number;
  windowMs: number;
  stableMs: number;
  handshakeMs: number;
  healthEveryMs: number;
  healthTimeoutMs: number;
  healthMisses: number;
}
export const POLICY: Readonly<Policy>;
export const MESSAGES: Readonly<Record<string, string>>;

export interface Time {
  now(): number;
  setTimeout(callback: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
  random(): number;
}

export interface SupervisorOptions {
  command?: string[];
  find?: () => string[];
  env?: NodeJS.ProcessEnv;
  initialize?: InitializeParams;
  /** answers to requests of the sidecar, by method */
  handlers?: Record<string, (params: any) => unknown>;
  policy?: Partial<Policy>;
  time?: Time;
  createClient?: (options: ClientOptions) => SidecarClient;
}

export interface SupervisedOptions extends RequestOptions {
  /** how long the call waits for a sidecar that is being started */
  patienceMs?: number;
  /** do not wait for the handshake */
  early?: boolean;
}

export interface SidecarSupervisor extends Requests<SupervisedOptions> {}
export class SidecarSupervisor extends EventEmitter {
  constructor(options: SupervisorOptions);
  readonly state: SupervisorState;
  readonly locale: string | null | undefined;
  readonly snapshot: Snapshot;
  start(): Promise<Snapshot>;
  retry(): Promise<Snapshot>;
  stop(): Promise<void>;
}
