import type { LoadJson, Methods, SidecarClient } from './client';
import type { SidecarSupervisor } from './supervisor';

export const TEMPLATE: string;
export const PROMPT_WITHOUT_MEMORY: string;

export interface Limits {
  loadMs: number;
  patienceMs: number;
  updateMs: number;
}

type LoadParams = Methods['memory/load']['params'];
type PromptParams = Methods['memory/systemPrompt']['params'];
type ContextOptions = Omit<Methods['recall/context']['params'], 'query'>;
export type UpdateOptions = Omit<Methods['memory/update']['params'], 'userMessage' | 'aiResponse'>;

/** `recorded`: the exchange is durable. `queued`: it waits in this process. Neither: it was refused, and `reason` says why. */
export interface UpdateAnswer {
  recorded: boolean;
  eventId: string | null;
  queued?: true;
  reason?: string;
  pending?: number;
}

export interface Memory {
  load(options?: LoadParams): Promise<LoadJson>;
  loadAIMemory(options?: LoadParams): Promise<string>;
  updateAIMemory(userMessage: string, aiResponse: string, options?: UpdateOptions): Promise<UpdateAnswer>;
  buildSystemPrompt(base: string, options?: PromptParams): Promise<string>;
  /** A block to put before this message; '' if nothing is relevant to it. */
  contextFor(message: string, options?: ContextOptions): Promise<string>;
  flush(): Promise<void>;
  readonly queued: number;
}

export function createMemory(options: {
  supervisor?: SidecarSupervisor;
  client?: SidecarClient;
  limits?: Partial<Limits>;
  log?: (line: string) => void;
  locale?: string;
}): Memory;

export interface ModelRequest {
  purpose: string;
  system: string;
  messages: { role: string; content: string }[];
  /** JSON Schema of the answer */
  schema: object;
  maxTokens: number;
}
export interface ModelCompletion {
  text: string;
  usage?: { inputTokens?: number; outputTokens?: number };
}
export interface ModelOffer {
  /** false switches the model off at once */
  enabled: boolean;
  readonly calls: number;
  readonly capabilities: { model: { maxCallsPerDay: number } };
  readonly handlers: Record<string, (params: any) => Promise<ModelCompletion>>;
}
/** A `complete` for `offerModel` that asks an OpenAI-compatible API with the app's own key. */
export function chatCompletion(options: {
  url: string;
  model: string;
  key?: () => string | Promise<string>;
  fetch?: typeof globalThis.fetch;
}): (request: ModelRequest) => Promise<ModelCompletion>;
/** The app's own model for the memory; off unless it is given to the supervisor. */
export function offerModel(options: {
  complete: (request: ModelRequest) => Promise<string | ModelCompletion>;
  maxCallsPerDay?: number;
  timeoutMs?: number;
  today?: () => string;
}): ModelOffer;
