import type { Memory } from './agent';
import type { SidecarSupervisor } from './supervisor';

export const PREFIX: string;
export const STATE_EVENT: string;
/** What a page may call, by name. */
export const CALLS: Readonly<Record<string, object>>;
/** What a page is sent: channel -> notification of the sidecar. */
export const EVENTS: Readonly<Record<string, string>>;

/** The parts of Electron's modules that are used. Electron's own objects fit, and no types of Electron are needed. */
export interface IpcMainLike {
  handle(channel: string, listener: (event: any, ...args: any[]) => unknown): void;
  removeHandler(channel: string): void;
}
export interface WindowLike {
  isDestroyed(): boolean;
  webContents: { getURL(): string; send(channel: string, ...args: any[]): void };
}
export interface AppLike {
  on(event: 'will-quit', listener: (event: { preventDefault(): void }) => void): unknown;
  quit(): void;
}

export interface MemoryIpcOptions {
  ipcMain: IpcMainLike;
  supervisor: SidecarSupervisor;
  /** usually `() => BrowserWindow.getAllWindows()` */
  getWindows: () => WindowLike[];
  /** pages that may call: by default `['file://']` */
  allowedOrigins?: string[];
}
/** Returns a function that removes all handlers and listeners. */
export function registerMemoryIpc(options: MemoryIpcOptions): () => void;

export interface StopOptions {
  app: AppLike;
  supervisor: SidecarSupervisor;
  memory?: Memory;
  /** how long updates that wait may delay the quit: 2 s by default */
  flushMs?: number;
}
export function stopBeforeQuit(options: StopOptions): void;
