/** A JSON Schema. */
export type JsonSchema = Record<string, unknown>;

export type SideEffects = "none" | "read" | "write" | "execute" | "network";
export type Format = "neutral" | "openai-chat" | "openai-responses" | "anthropic" | "gemini";

/** What a failure of a function is; `transient` and `rate_limited` are tried again where the tool may be. */
export type Kind =
  | "execution_error"
  | "transient"
  | "rate_limited"
  | "invalid_input"
  | "permission_denied"
  | "output_invalid"
  | "cancelled"
  | "timeout"
  | "internal";

// Tools

/** A function that a model may call. */
export interface ToolOptions<Args = any> {
  name: string;
  /** What the model reads. */
  description?: string;
  /** Arguments that do not match never reach the function. */
  inputSchema?: JsonSchema;
  /** The worst that it can do: it decides whether calls overlap and whether somebody is asked. */
  sideEffects: SideEffects;
  /** Whether it overlaps with others; made of `sideEffects` if it is left out. */
  concurrency?: "read" | "serial" | "concurrent";
  /** It runs other tools: it takes no place in a pool. */
  recursive?: boolean;
  /** Running it twice is as good as once: it may be retried. */
  idempotent?: boolean;
  /** Of each attempt. */
  timeoutMs?: number;
  /** How long it may go on after its timeout. */
  graceMs?: number;
  attempts?: number;
  maxConcurrency?: number;
  cost?: number;
  /** A change of it forgets answers that approve calls of it. */
  version?: string;
  /** What it returns is the result: text, data, an `Image`, or a list with images. */
  run(args: Args, context: Context): unknown;
}

export interface Tool {
  readonly name: string;
  readonly definition: Readonly<Record<string, unknown>>;
  readonly run: (args: any, context: Context) => unknown;
}

/** Makes a tool of a function. */
export function tool<Args = any>(about: ToolOptions<Args>): Tool;

/** A picture, as a tool's result or as an item of its list. */
export class Image {
  constructor(data: Uint8Array, mediaType: string);
  readonly data: Uint8Array;
  readonly mediaType: string;
}

/** What a function may know of its invocation, and do within it. */
export class Context {
  private constructor();
  /** The id of the call, as the model gave it. */
  readonly callId: string;
  readonly tool: string;
  readonly session: string;
  /** The path of the agent that made the call, `root` or one below it. */
  readonly agent: string;
  readonly turn: string | undefined;
  /** 1, and more if the call is tried again. */
  readonly attempt: number;
  /** The caller's idempotency key, to be passed on to whom this function calls. */
  readonly key: string | undefined;
  /** When the time of this attempt is over. */
  readonly deadline: Date | undefined;
  /** Aborted when the function is to stop. What comes after it in the turn waits until it has. */
  readonly signal: AbortSignal;
  /** Output that comes before the end, for who listens to it. */
  emit(text: string): void;
  /** Calls tools as part of this call, which holds no place in a pool meanwhile; a value or a `CallError` for each. */
  dispatch(calls: Iterable<BatchEntry>): Promise<any[]>;
  /** One call, like `dispatch`; rejects with a `CallError` if it fails. */
  call(tool: string, args?: unknown, options?: CallOptions): Promise<any>;
}

// Calls

export interface CallOptions {
  /** Its name in its turn; it is given one otherwise. */
  id?: string;
  /** Calls of one tool with one key run once, over all turns of a session. */
  key?: string;
  /** Of each attempt. */
  timeoutMs?: number;
  /** For all of the call, its wait included. */
  deadlineMs?: number;
}

/** A tool with its arguments and options, or the name of a tool that takes none. */
export type BatchEntry = string | readonly [tool: string, args?: unknown, options?: CallOptions];

export interface Waiting {
  /** Cancels what is waited for, and rejects with its reason. */
  signal?: AbortSignal;
  /** Takes output that comes before the end. */
  onDelta?(delta: Delta): void;
}

/** A piece of a call's output that came before its end. */
export interface Delta {
  callId: string;
  text: string;
}

/** What became of one call. */
export type Outcome = {
  callId: string;
  tool: string;
  /** What the model has to be told beside: that a person has changed the arguments. */
  note: string | undefined;
  /** What the engine knows of it: attempts, times, whether it was shared with another call. */
  meta: Record<string, any>;
} & ({ ok: true; value: any; error: undefined } | { ok: false; value: undefined; error: CallError });

/** What became of a turn. */
export interface Turn {
  /** What the provider's API takes with the next request, behind the model's answer; empty for calls of one's own. */
  messages: any[];
  /** Of each call, in their order. */
  outcomes: Outcome[];
  /** The engine's own number of it, which events have too. */
  number: number;
}

/** A turn that is open: iterated for the output that comes before its end. */
declare class OpenTurn implements AsyncIterable<Delta> {
  protected constructor();
  readonly done: boolean;
  /** Asks to stop one call, or all of it. It still ends with an outcome for each call. */
  cancel(callId?: string): void;
  /** Needs `{ deltas: true }` at the start. */
  [Symbol.asyncIterator](): AsyncIterator<Delta>;
}

/** A turn that was sent: awaited for its end. */
export class RunningTurn extends OpenTurn implements PromiseLike<Turn> {
  then: Promise<Turn>["then"];
  catch: Promise<Turn>["catch"];
  finally: Promise<Turn>["finally"];
}

/**
 * A turn to which calls are added while others run, as when a model is still writing. It is no promise: what awaited it
 * would wait for an end that nobody has asked for.
 */
export class GrowingTurn extends OpenTurn {
  call(tool: string, args?: unknown, options?: CallOptions): PendingCall;
  add(calls: Iterable<BatchEntry>): PendingCall[];
  /** Nothing more is added; resolves to what became of all calls. */
  end(): Promise<Turn>;
}

/** A call that was sent: awaited for what the tool gives. */
export class PendingCall implements PromiseLike<any> {
  private constructor();
  readonly id: string;
  readonly tool: string;
  /** The same, with what the engine knows of it; does not reject for a call that has failed. */
  readonly outcome: Promise<Outcome>;
  then: Promise<any>["then"];
  catch: Promise<any>["catch"];
  finally: Promise<any>["finally"];
  /** Asks to stop it, which is still answered. */
  cancel(): void;
}

/** Makes calls, and runs those of a model. */
export class Session {
  private constructor();
  readonly name: string;
  /** The path of the agent that makes the calls: `root`, or that of a fork. */
  readonly agent: string;
  /**
   * Runs the calls of a model's answer in the order that the model meant, and waits for all of them. A failed call is a
   * message for the model and an outcome, and never a rejection.
   */
  dispatch(response: object, options?: { from?: Format; to?: Format } & Waiting): Promise<Turn>;
  /** `dispatch` without the waiting. */
  start(response: object, options?: { from?: Format; to?: Format; deltas?: boolean }): RunningTurn;
  /** Calls a tool; rejects with a `CallError` if that fails. */
  call(tool: string, args?: unknown, options?: CallOptions & Waiting): Promise<any>;
  /** Calls tools together, with the effect of one after another; a value or a `CallError` for each, in order. */
  batch(calls: Iterable<BatchEntry>, options?: { throws?: boolean } & Waiting): Promise<any[]>;
  /** `batch`, with what the engine knows of each call. */
  outcomes(calls: Iterable<BatchEntry>, options?: Waiting): Promise<Outcome[]>;
  /** A turn to which calls are added while others run. */
  turn(options?: { deltas?: boolean }): GrowingTurn;
  /** A sub-agent: the same session for an agent that may do less. */
  fork(options?: { name?: string; capabilities?: Capabilities; onlyTools?: string[] }): Promise<Session>;
  /** The tools that may be called here, as the provider's API takes them. */
  definitions(to?: Format | "mcp"): Promise<any[]>;
  /** Cancels what runs in the session, and lets go of it. Does nothing for a fork. */
  close(): Promise<void>;
}

// Approval

/** May this call run? `String(question)` shows it as a person should see it. */
export class Question {
  private constructor();
  readonly requestId: string;
  readonly session: string;
  readonly agent: string;
  readonly turn: string | number | undefined;
  readonly callId: string;
  readonly tool: string;
  readonly sideEffects: SideEffects;
  readonly arguments: any;
  /** Of what will run. An answer is for what was shown, and counts for nothing else. */
  readonly digest: string;
  /** What the call would change, if its tool can tell. */
  readonly changes: string | undefined;
  readonly sheet: { label: string; lines: string[] }[];
  /** What `"always"` and `"never"` would cover. */
  readonly always: string;
  readonly links: unknown[];
  /** Why the arguments of the last answer, an `Edit`, may not run. */
  readonly refused: string | undefined;
  readonly asked: Date;
  readonly expires: Date;
  /** Aborted when it need not be answered any more. */
  readonly signal: AbortSignal;
}

/** A yes, with other arguments than those of the call. */
export class Edit {
  constructor(args: unknown);
  readonly arguments: unknown;
}

/** A no, with a reason that the model reads. */
export class Deny {
  constructor(reason?: string);
  readonly reason: string | undefined;
}

export type Answer = boolean | "always" | "never" | Edit | Deny;

// Engines

export interface Capabilities {
  tools?: string[];
  fs?: string[];
  net?: string[];
}

/** Each can only narrow what the configuration says. */
export interface SessionOptions {
  capabilities?: Capabilities;
  confirmations?: Record<string, unknown>;
  limits?: Record<string, number>;
}

export interface StartOptions {
  tools?: Iterable<Tool | ToolOptions>;
  /** A `toolyard.toml`. */
  config?: string | URL;
  /** The directory of the file tools. */
  workspace?: string | URL;
  /** Is asked about calls that need approval; without it they are refused. Whatever goes wrong with it is a no. */
  approve?(question: Question): Answer | Promise<Answer>;
  /** The program, found by itself if it is left out. */
  program?: string | string[];
  /** More of its arguments. */
  args?: string[];
  /** Added to its environment. */
  env?: Record<string, string>;
  /** Takes lines of the program's log, and what functions throw; warnings and errors go to standard error without it. */
  log?(text: string, level: "info" | "warn" | "error"): void;
}

/** An event of the engine, with its `cursor`. Where some were missed, `event` is `reset`. */
export type EngineEvent = { event: string; cursor: string } & Record<string, any>;

/** The whole engine, in a program that this one has started. */
export class Engine {
  private constructor();
  readonly version: string;
  /** The name of this life of the engine. */
  readonly epoch: string;
  session(name?: string, options?: SessionOptions): Promise<Session>;
  /** Makes one more function a tool; one of the same name is replaced. */
  register(tool: Tool | ToolOptions): Promise<void>;
  /** Takes a function away. Calls of it that run go on. */
  unregister(name: string): Promise<void>;
  /** Events of the engine from now on, of these kinds or of all. */
  events(kinds?: Iterable<string>): AsyncIterableIterator<EngineEvent>;
  /** Ends the program: waits so long (30 s) for turns that are open, then cancels them, and makes it end if it does not. */
  close(options?: { timeoutMs?: number; graceMs?: number }): Promise<void>;
}

/** Starts the program, and resolves when it has taken the tools. */
export function start(options?: StartOptions): Promise<Engine>;

/** The engine of a `toolyard serve`. */
export class RemoteEngine {
  private constructor();
  session(name?: string, options?: SessionOptions & { role?: string; workspace?: string }): Promise<Session>;
  /** The questions that wait for an answer, each whole; for a token that may approve. */
  questions(options?: { session?: string }): Promise<Question[]>;
  /** Answers a question as `approve` would; rejects with `Refused` if that does not count. */
  answer(question: Question, answer: Answer): Promise<Record<string, any>>;
}

/** The engine of a server, with the same sessions over HTTP. */
export function connect(url: string, options?: { token?: string }): RemoteEngine;

// Errors

/** Everything that this package throws, except for wrong use of the package itself. */
export class ToolyardError extends Error {}

/** Thrown by a tool to say what went wrong; the message is what the model reads. */
export class ToolError extends ToolyardError {
  constructor(message: string, about?: { kind?: Kind; retryAfterMs?: number; outcome?: "failed" | "unknown" });
  readonly kind: Kind;
  readonly retryAfterMs: number | undefined;
  readonly outcome: "failed" | "unknown" | undefined;
}

/** A call has failed. Its message is written for a model to read. */
export class CallError extends ToolyardError {
  protected constructor();
  /** One of five words; each has a subclass. */
  readonly slug: string;
  readonly tool: string;
  readonly callId: string;
  readonly meta: Record<string, any>;
  readonly note: string | undefined;
  /** The precise error code, such as `timeout`. */
  readonly code: string | undefined;
  /** Whether the call has had an effect. */
  readonly outcome: "not_started" | "failed" | "unknown" | undefined;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly attempts: number;
}

export class ToolNotFound extends CallError {}
export class PermissionDenied extends CallError {}
export class FsDenied extends CallError {}
export class InvalidArgs extends CallError {}
export class ToolFailed extends CallError {}

/** The engine has refused a request, which did nothing. */
export class Refused extends ToolyardError {
  private constructor();
  readonly code: string;
  readonly errors: { pointer: string; detail: string }[];
}

/** There is no program `toolyard` to be started. */
export class ProgramNotFound extends ToolyardError {}

/** Nothing can be sent any more, and no answer comes. A call that was waiting may have had its effect. */
export class Disconnected extends ToolyardError {}

/** The program has ended although nobody told it to. */
export class ProgramDied extends Disconnected {
  private constructor();
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** The last lines that it wrote to standard error. */
  readonly stderr: string;
}

/** What came from the other side is none of the protocol; nothing more of it is read. */
export class ProtocolError extends Disconnected {}

/** The engine was closed. */
export class Closed extends Disconnected {}
