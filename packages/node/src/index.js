// Toolyard in JavaScript: the engine that runs the tool calls of LLM agents, with functions of this program as tools.
//
//     import { start, tool } from "toolyard";
//
//     const engine = await start({ tools: [add] });
//     const session = await engine.session();
//     const turn = await session.dispatch(response); // what a provider's API has returned
//     messages.push(...turn.messages); // for the next request

export { Image } from "./content.js";
export { Deny, Edit, Question } from "./desk.js";
export { Engine, start } from "./engine.js";
export {
  CallError,
  Closed,
  Disconnected,
  FsDenied,
  InvalidArgs,
  PermissionDenied,
  ProgramDied,
  ProgramNotFound,
  ProtocolError,
  Refused,
  ToolError,
  ToolFailed,
  ToolNotFound,
  ToolyardError,
} from "./errors.js";
export { connect, RemoteEngine } from "./http.js";
export { Context } from "./invocation.js";
export { GrowingTurn, PendingCall, RunningTurn } from "./running.js";
export { Session } from "./session.js";
export { tool } from "./tool.js";
