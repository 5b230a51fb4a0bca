//! `toolyard plan`: what `run` would do, without doing it.

mod declared;
mod json;
mod text;

use crate::{
    cli::{Approve, PlanArgs},
    error::Error,
    exit::Exit,
    input::{Input, Line, Lines, Origin},
    run::results,
    setup::{Setup, with_own_names},
};
use std::{fmt::Display, time::Duration};
use toolyard::{Answer, Batch, BuildError, Drain, Engine, ErrorKind, Plan, PlannedCall};
use toolyard_wire::{DecodeError, Episode, decode};

/// Plans the input that the arguments name.
pub(crate) async fn plan(args: PlanArgs) -> Result<Exit, Error> {
    let origin = Origin::of(&args.input)?;
    let mut setup = Setup::load(&args.setup)?;
    setup.connect().await?;
    let mut planner = Planner { args, setup, origin, tally: Tally::default() };
    match planner.origin.open(planner.args.input.from)? {
        Input::Response(text) => planner.response(&text).await?,
        Input::Stream(lines) => planner.response(&planner.origin.read_all(lines)?).await?,
        Input::Episodes(lines) => planner.episodes(lines).await?,
    }
    planner.setup.disconnect(false).await;
    if !planner.args.json {
        results::print_text(&text::tally(&planner.tally))?;
    }
    Ok(planner.tally.exit())
}

struct Planner {
    args: PlanArgs,
    setup: Setup,
    origin: Origin,
    tally: Tally,
}

/// One planned batch.
struct Planned<'a> {
    /// The episode's id and the turn, if the batch has them.
    turn: Option<(&'a str, usize)>,
    plan: &'a Plan,
    /// The remark on approval, by call.
    approval: Vec<Option<&'static str>>,
}

/// The totals over all batches.
#[derive(Debug, Default)]
struct Tally {
    batches: usize,
    calls: usize,
    invalid: usize,
    refused: usize,
    unreadable: usize,
    /// The first of the invalid calls, as lines.
    invalid_calls: Vec<String>,
}

/// The number of invalid calls listed in the summary. Each batch lists all of its own.
const INVALID_CALLS_MAX: usize = 100;

impl Tally {
    fn exit(&self) -> Exit {
        match self {
            Self { unreadable: 1.., .. } => Exit::Input,
            Self { refused: 1.., .. } => Exit::CallFailed,
            _ => Exit::Ok,
        }
    }
}

/// Whether a call does not fit its schema, or cannot be parsed at all.
fn is_invalid(call: &PlannedCall) -> bool {
    call.refusal.as_ref().is_some_and(|error| error.kind == ErrorKind::InvalidInput)
}

impl Planner {
    async fn response(&mut self, text: &str) -> Result<(), Error> {
        let message =
            decode(text, self.args.input.from.format()).map_err(|error| self.origin.error(error))?;
        let engine = self.setup.engine().approver(Answer::allow("--approve")).build().await?;
        let message = with_own_names(message, engine.registry());
        if message.is_empty() {
            let format = message.format();
            anstream::eprintln!("toolyard: {}: no tool calls in this {format} response", self.origin);
        }
        self.batch(&engine, None, &message.batch())
    }

    async fn episodes(&mut self, lines: Lines) -> Result<(), Error> {
        let mut is_blank = true;
        for line in lines {
            is_blank = false;
            if let Err(why) = self.episode(&line).await? {
                self.origin.line_error(line.number, why).print();
                self.tally.unreadable += 1;
            }
        }
        if is_blank { Err(self.origin.error(DecodeError::Empty)) } else { Ok(()) }
    }

    /// Plans an episode. The inner error says why its line cannot be planned.
    async fn episode(&mut self, line: &Line) -> Result<Result<(), String>, Error> {
        let line = line.text.as_ref().map_err(ToString::to_string);
        let episode = line.and_then(|text| Episode::parse_line(text).map_err(to_text));
        let episode = match episode {
            Ok(episode) => episode,
            Err(why) => return Ok(Err(why)),
        };
        let declared = declared::tools(&episode);
        let engine = self.setup.engine_with(declared).approver(Answer::allow("--approve")).build().await;
        let engine = match engine {
            Ok(engine) => engine,
            Err(BuildError::Tool(error)) => return Ok(Err(format!("tools: {error}"))),
            Err(error) => return Err(error.into()),
        };
        for (number, calls) in episode.turns.iter().enumerate() {
            self.batch(&engine, Some((&episode.id, number)), &Batch::new(calls.clone()))?;
        }
        engine.shutdown(Drain::default().finish(Duration::ZERO)).await;
        Ok(Ok(()))
    }

    fn batch(&mut self, engine: &Engine, turn: Option<(&str, usize)>, batch: &Batch) -> Result<(), Error> {
        let plan = engine.session_with("plan", self.args.role.session()).plan(batch);
        let refused = || plan.calls.iter().filter(|call| call.refusal.is_some());
        self.tally.batches += 1;
        self.tally.calls += plan.calls.len();
        self.tally.refused += refused().count();
        for call in refused().filter(|call| is_invalid(call)) {
            self.tally.invalid += 1;
            if self.tally.invalid_calls.len() < INVALID_CALLS_MAX {
                self.tally.invalid_calls.push(text::invalid_call(turn, call));
            }
        }
        let approval = plan.calls.iter().map(|call| self.approval(engine, call)).collect();
        let planned = Planned { turn, plan: &plan, approval };
        if self.args.json {
            results::print_line(&json::batch(&planned))
        } else {
            results::print_text(&text::batch(&planned))
        }
    }

    /// What approval means for a call that passes all other checks.
    fn approval(&self, engine: &Engine, call: &PlannedCall) -> Option<&'static str> {
        let entry = engine.registry().get(&call.tool)?;
        let asks = self.setup.confirmation(entry.spec()).asks();
        match self.args.approve {
            _ if !asks || call.refusal.is_some() => None,
            None => Some("needs approval"),
            Some(Approve::Auto | Approve::Ask) => Some("approved"),
            Some(Approve::Deny) => Some("approval denied"),
        }
    }
}

fn to_text(error: impl Display) -> String {
    error.to_string()
}
