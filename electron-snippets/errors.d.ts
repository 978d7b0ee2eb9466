import type { ErrorKind } from './types';

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

/** An error as it crosses to a page. */
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
