//! `toolyard journal show`: the calls of a session, with what the journal knows of each.

mod json;
mod text;

use super::Failure;
use crate::{cli::JournalShowArgs, error::Error, exit::Exit, secrecy};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    io::{self, BufWriter, Write},
};
use toolyard::{Arguments, Redactor};
use toolyard_journal::{Reader, Which};

/// What of a journal is shown as it is: it keeps arguments and keys as they came (JR-1).
pub(super) struct Shown {
    redactor: Redactor,
    /// Whether arguments are shown whole, with what is secret in them.
    has_arguments: bool,
}

impl Shown {
    fn text(&self, text: &str) -> String {
        self.redactor.text(text).into_owned()
    }

    fn value(&self, value: &Value) -> Value {
        self.redactor.value(value).into_owned()
    }

    /// The arguments of a call as somebody gave them: they may be a text that is no JSON.
    fn arguments(&self, given: &Arguments) -> Value {
        let value = match given {
            Arguments::Json(value) => value.as_ref().clone(),
            Arguments::Text(text) => serde_json::from_str(text).unwrap_or_else(|_| text.to_string().into()),
        };
        if self.has_arguments { value } else { self.value(&value) }
    }
}

/// Shows the calls.
pub(super) fn show(args: &JournalShowArgs) -> Result<Exit, Error> {
    let reader = Reader::open(&args.file)?;
    let turns = reader.turns(&Which::default().of_session(&args.session))?;
    // Those of several agents are one turn.
    let wanted: BTreeSet<(i64, u64)> = turns
        .iter()
        .filter(|turn| args.turn.is_none_or(|number| number == turn.turn))
        .map(|turn| (turn.epoch, turn.turn))
        .collect();
    if wanted.is_empty() {
        return Err(match (args.turn, turns.is_empty()) {
            (Some(number), false) => {
                Failure::Refused(format!("the session {} has no turn {number} here", args.session))
            }
            _ => Failure::no_session(&args.session),
        }
        .into());
    }
    let redactor = secrecy::with_token(Redactor::standard());
    let shown = Shown { redactor, has_arguments: args.arguments };
    let mut out = BufWriter::new(io::stdout().lock());
    for (epoch, number) in wanted {
        // Pruned since the list was read.
        let Some(turn) = reader.turn_of(epoch, &args.session, number)? else { continue };
        let written = match args.json {
            true => json::write(&mut out, &turn, &shown),
            false => text::write(&mut out, &turn, &shown),
        };
        written.map_err(Error::results)?;
    }
    out.flush().map_err(Error::results)?;
    Ok(Exit::Ok)
}
