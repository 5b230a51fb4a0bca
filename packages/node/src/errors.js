// What this package throws.
//
//     ToolyardError
//     ├── ToolError            thrown by a tool: what the model is told
//     ├── CallError            a call has failed
//     │   ├── ToolNotFound  PermissionDenied  FsDenied  InvalidArgs  ToolFailed
//     ├── Refused              the engine has refused a request that is no call
//     ├── ProgramNotFound      there is no program `toolyard`
//     └── Disconnected         nothing can be sent any more
//         ├── ProgramDied  ProtocolError  Closed

/** Everything that this package throws, except for wrong use of the package itself. */
export class ToolyardError extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}

/** Thrown by a tool to say what went wrong; the message is what the model reads. */
export class ToolError extends ToolyardError {
  constructor(message, { kind = "execution_error", retryAfterMs, outcome } = {}) {
    super(message);
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
    this.outcome = outcome;
  }
}

/** A call has failed. Its message is written for a model to read. */
export class CallError extends ToolyardError {
  constructor(message, { slug, tool, callId, meta, note }) {
    super(message);
    this.slug = slug;
    this.tool = tool;
    this.callId = callId;
    this.meta = meta;
    this.note = note;
    this.code = meta.code;
    this.outcome = meta.outcome;
    this.retryable = meta.retryable === true;
    this.retryAfterMs = meta.retry_after_ms;
    this.attempts = meta.attempts ?? 0;
  }
}

export class ToolNotFound extends CallError {}
export class PermissionDenied extends CallError {}
export class FsDenied extends CallError {}
export class InvalidArgs extends CallError {}
export class ToolFailed extends CallError {}

/** The engine has refused a request, which did nothing. */
export class Refused extends ToolyardError {
  constructor(message, { code = "", errors = [] } = {}) {
    const details = errors.filter(({ detail }) => !message.includes(detail)).map(({ pointer, detail }) => `${pointer}: ${detail}`);
    super([message, ...details].join("; "));
    this.code = code;
    this.errors = errors;
  }
}

export class ProgramNotFound extends ToolyardError {}

/** Nothing can be sent any more, and no answer comes. A call that was waiting may have had its effect. */
export class Disconnected extends ToolyardError {}

/** The program has ended although nobody told it to. */
export class ProgramDied extends Disconnected {
  constructor(message, { exitCode, signal, stderr }) {
    super(message);
    this.exitCode = exitCode;
    this.signal = signal;
    this.stderr = stderr;
  }
}

/** What came from the other side is none of the protocol; nothing more of it is read. */
export class ProtocolError extends Disconnected {}

/** The engine, or the session, was closed. */
export class Closed extends Disconnected {}

const BY_SLUG = new Map([
  ["tool_not_found", ToolNotFound],
  ["permission_denied", PermissionDenied],
  ["fs_denied", FsDenied],
  ["invalid_args", InvalidArgs],
  ["tool_failed", ToolFailed],
]);

/** The error of a call that has failed; a later word than these five is a `ToolFailed`. */
export function callError(message, about) {
  return new (BY_SLUG.get(about.slug) ?? ToolFailed)(message, about);
}

/** What an `error` line, or a problem document, says. */
export function refused({ message, detail, code, errors }) {
  return new Refused(message ?? detail ?? "the engine has refused a request", { code: code ?? "", errors: errors ?? [] });
}
