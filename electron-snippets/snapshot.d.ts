// What the supervisor reports; apart from supervisor.d.ts, so that the types of a page need no types of Node.

import type { SidecarErrorJson } from './errors';

export type SupervisorState = 'stopped' | 'starting' | 'running' | 'waiting' | 'template';

export interface Snapshot {
  state: SupervisorState;
  /** for people, in Chinese */
  message: string;
  /** within the last three minutes */
  restarts: number;
  retryInMs?: number;
  error?: SidecarErrorJson;
  server?: { name: string; version: string; protocolVersion: number };
}
