//! One response: runs its calls, and prints the results as the next request needs them.

use super::{
    results, toolset,
    yard::{Played, Yard},
};
use crate::{cli::RunArgs, exit::Exit, fault::Fault, input::Origin, setup::mapped};
use toolyard_wire::{Message, decode, encode};

/// Runs the calls of a response.
pub(super) async fn run(yard: &mut Yard, args: &RunArgs, origin: &Origin, text: &str) -> Result<Exit, Fault> {
    let message = decode(text, args.input.from.format()).map_err(|error| origin.fault(error))?;
    let message = mapped(message, yard.engine.registry());
    remark(yard, origin, &message);
    let session = yard.session("run");
    let played = if toolset::is_in(&message) {
        toolset::play(yard, &session, message.calls(), Played::default()).await
    } else {
        yard.play(&session, message.calls()).await
    };
    answer(yard, args, &message, played).map(|()| Exit::Ok)
}

/// Prints the results.
pub(super) fn answer(
    yard: &mut Yard,
    args: &RunArgs,
    message: &Message,
    played: Played,
) -> Result<(), Fault> {
    let to = args.to.map_or(message.format(), |to| to.format());
    let printed = yard.print(|| results::print_pretty(&encode(message, &played.outcomes, to)));
    yard.record(None, played);
    printed
}

/// Prints remarks beside the results.
pub(super) fn remark(yard: &Yard, origin: &Origin, message: &Message) {
    let format = message.format();
    if message.is_cut() {
        yard.say(&format!(
            "{origin}: the {format} stream broke off inside a call, which is answered as invalid; fetch it again"
        ));
    }
    if message.is_empty() {
        yard.say(&format!(
            "{origin}: no tool calls in this {format} response: the model is done, nothing was run"
        ));
    }
}
