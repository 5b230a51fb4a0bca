//! `toolyard journal ls`: turns, the newest first.

use super::{millis, shown, write_line};
use crate::{
    cli::JournalLsArgs,
    display::{clip, count},
    error::Error,
    exit::Exit,
    table::Table,
};
use serde_json::{Value, json};
use std::io::{self, BufWriter, Write};
use toolyard_journal::{Gap, Reader, TurnRow, Which};

/// How many turns people are shown, unless they ask for more.
const LAST: u64 = 100;
const NAME_CHARS: usize = 40;

/// Lists the turns.
pub(super) fn ls(args: &JournalLsArgs) -> Result<Exit, Error> {
    let reader = Reader::open(&args.file)?;
    let last = args.last.map(Into::into).or((!args.json).then_some(LAST));
    let mut which = if args.open { Which::default().open() } else { Which::default() };
    if let Some(last) = last {
        // One more tells whether there are more.
        which = which.last(last.saturating_add(1));
    }
    let (gaps, mut turns) = (reader.gaps()?, reader.turns(&which)?);
    let most = last.and_then(|last| usize::try_from(last).ok()).unwrap_or(usize::MAX);
    let has_more = turns.len() > most;
    turns.truncate(most);
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match args.json {
        true => lines(&mut out, &gaps, &turns),
        false => text(&mut out, &gaps, &turns, has_more),
    };
    written.and_then(|()| out.flush()).map_err(Error::results)?;
    Ok(Exit::Ok)
}

fn lines(out: &mut impl Write, gaps: &[Gap], turns: &[TurnRow]) -> io::Result<()> {
    for gap in gaps {
        write_line(out, &json!({"what": "gap", "epoch": gap.epoch, "since_ms": millis(gap.since)}))?;
    }
    turns.iter().try_for_each(|turn| write_line(out, &fields(turn)))
}

fn fields(turn: &TurnRow) -> Value {
    json!({
        "what": "turn",
        "epoch": turn.epoch,
        "session": turn.session,
        "is_named": turn.is_named,
        "agent": turn.agent,
        "turn": turn.turn,
        "began_ms": millis(turn.began),
        "is_open": turn.is_open,
        "ended": turn.ended,
        "attempted": turn.attempted,
        "not_started": turn.not_started,
        "cancelled": turn.cancelled,
        "open_questions": turn.open_questions,
    })
}

fn text(out: &mut impl Write, gaps: &[Gap], turns: &[TurnRow], has_more: bool) -> io::Result<()> {
    for Gap { epoch, since, .. } in gaps {
        writeln!(
            out,
            "records from {} on may be missing: the program of epoch {epoch} did not close the journal, whose durability \
             was 'process', and the machine has started again since; a call of it that is not started here may have been",
            shown(*since)
        )?;
    }
    if turns.is_empty() {
        return writeln!(out, "no turns");
    }
    let heads = [
        "began (UTC)",
        "epoch",
        "session",
        "agent",
        "turn",
        "state",
        "ended",
        "attempted",
        "not started",
        "cancelled",
        "open questions",
    ];
    let mut table = Table::new(heads);
    for turn in turns {
        let numbers = [turn.ended, turn.attempted, turn.not_started, turn.cancelled, turn.open_questions];
        let [ended, attempted, not_started, cancelled, questions] = numbers.map(|number| number.to_string());
        table.row([
            shown(turn.began),
            turn.epoch.to_string(),
            clip(turn.session.as_str(), NAME_CHARS),
            clip(turn.agent.as_str(), NAME_CHARS),
            turn.turn.to_string(),
            if turn.is_open { "open" } else { "closed" }.to_owned(),
            ended,
            attempted,
            not_started,
            cancelled,
            questions,
        ]);
    }
    write!(out, "{table}")?;
    if has_more {
        writeln!(out, "… and older ones: --last N shows more than {}", count(turns.len(), "turn"))?;
    }
    Ok(())
}
