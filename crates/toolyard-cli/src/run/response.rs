//! One response: runs its calls, and prints the results as the next request needs them.

use super::{
    durable, results,
    runner::{BatchResult, Runner},
    toolset,
};
use crate::{cli::RunArgs, error::Error, exit::Exit, input::Origin, setup::with_own_names};
use toolyard_wire::{Message, Results, decode};

/// Runs the calls of a response.
pub(super) async fn run(runner: &Runner, args: &RunArgs, origin: &Origin, text: &str) -> Result<Exit, Error> {
    let message = decode(text, args.input.from.format()).map_err(|error| origin.error(error))?;
    let message = with_own_names(message, runner.engine.registry());
    remark(runner, origin, &message);
    if runner.journal.is_open() {
        if toolset::is_in(&message) {
            let why = "--journal: calls of a toolset run in pieces, which cannot go on one by one: run them without";
            return Err(Error::Usage(why.to_owned()));
        }
        let result = durable::run(runner, args, text, message.calls()).await?;
        return answer(runner, args, &message, result).map(|()| Exit::Ok);
    }
    let session = runner.session("run");
    let result = if toolset::is_in(&message) {
        toolset::run(runner, &session, message.calls(), BatchResult::default()).await
    } else {
        runner.run_batch(&session, message.calls()).await
    };
    answer(runner, args, &message, result).map(|()| Exit::Ok)
}

/// Prints the results.
pub(super) fn answer(
    runner: &Runner,
    args: &RunArgs,
    message: &Message,
    result: BatchResult,
) -> Result<(), Error> {
    let to = args.to.map_or(message.format(), |to| to.format());
    let printed = runner.print(|| results::print_pretty(&Results::new(message, &result.outcomes, to)));
    runner.record(None, &result.outcomes, result.timeline);
    printed
}

/// Prints remarks beside the results.
pub(super) fn remark(runner: &Runner, origin: &Origin, message: &Message) {
    let format = message.format();
    if message.is_cut() {
        runner.notify(&format!(
            "{origin}: the {format} stream broke off inside a call, which is answered as invalid; fetch it again"
        ));
    }
    if message.is_empty() {
        runner.notify(&format!(
            "{origin}: no tool calls in this {format} response: the model is done, nothing was run"
        ));
    }
}
