//! `toolyard journal approve`: answers a question that a program has left open (SM-10).

use super::{Failure, write};
use crate::{
    cli::JournalApproveArgs,
    display::clip,
    error::{Error, chain},
    exit::Exit,
    run::{ask::user, results},
};
use std::fmt::Write;
use toolyard::{
    Answer, AnswerRecord, CallPlace, Durable, RecordError, Recorder, RequestId, event::SettledBy,
};
use toolyard_journal::{Journal, OpenQuestion, Reader};

/// How many open questions are listed, and how many characters of a name.
const LISTED: usize = 20;
const NAME_CHARS: usize = 40;

/// Gives the answer.
pub(super) async fn approve(args: JournalApproveArgs) -> Result<Exit, Error> {
    let who = user();
    let answer = if args.deny { Answer::deny(who) } else { Answer::allow(who) };
    let answer = args.reason.iter().fold(answer, Answer::because);
    let journal = write(&args.file)?;
    let given = give(&journal, args.request, &answer).await;
    // What cannot be written says so here.
    journal.close()?;
    let question = given?;
    let said = if args.deny { "denied" } else { "approved" };
    let place = place(&question);
    results::print_text(&format!("{said}: {place}; it counts when that turn is resumed\n"))?;
    Ok(Exit::Ok)
}

/// Records the answer to a question and to those that share it, as the engine does.
async fn give(journal: &Journal, request: RequestId, answer: &Answer) -> Result<OpenQuestion, Failure> {
    let open = Reader::open(journal.path())?.open_questions()?;
    let asked = open.iter().find(|question| question.request == request);
    let asked = asked.ok_or_else(|| refusal(request, &open))?;
    if let Some(lead) = asked.shares.filter(|lead| open.iter().any(|question| question.request == *lead)) {
        let why = format!("the question {request} is asked as {lead}, about the same call: answer that one");
        return Err(Failure::Refused(why));
    }
    let shared = open.iter().filter(|question| question.shares == Some(request));
    // One by one: if the file cannot be written any more, the question itself is answered or nothing is.
    record(journal, asked, answer, SettledBy::Approver).await?;
    for question in shared {
        record(journal, question, answer, SettledBy::Shared).await?;
    }
    Ok(asked.clone())
}

async fn record(
    journal: &Journal,
    question: &OpenQuestion,
    answer: &Answer,
    by: SettledBy,
) -> Result<(), Failure> {
    let OpenQuestion { session, agent, turn, batch, place, call_id, request, digest, .. } = question;
    let call = CallPlace::new(session, agent, *turn, *batch, *place, call_id);
    let written = match journal.answer(&AnswerRecord::new(call, *request, *digest, answer, by)) {
        Durable::When(written) => written.await,
        Durable::Nothing => Ok(()),
    };
    written.map_err(|error: RecordError| Failure::Refused(chain(&error)))
}

/// Why a question cannot be answered, with those that can.
fn refusal(request: RequestId, open: &[OpenQuestion]) -> Failure {
    let mut why =
        format!("no question {request} is open: it was answered, its call has ended, or it never was");
    for (at, question) in open.iter().take(LISTED).enumerate() {
        let begin = if at == 0 { "; open: " } else { ", " };
        write!(why, "{begin}{} ({})", question.request, place(question))
            .expect("writing to a string cannot fail");
    }
    match open.len() {
        0 => why.push_str("; none is"),
        all if all > LISTED => why.push_str(", …"),
        _ => {}
    }
    Failure::Refused(why)
}

fn place(question: &OpenQuestion) -> String {
    let [tool, call, session] =
        [question.tool.as_str(), question.call_id.as_str(), question.session.as_str()]
            .map(|name| clip(name, NAME_CHARS));
    format!("{tool}, call {call} of session {session}, turn {}", question.turn)
}
