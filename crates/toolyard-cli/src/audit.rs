//! `toolyard audit`: reports what an event log says about every call, and whether the log is whole.
//!
//! ```text
//!   file ─► LogLines ─► Line ─┬─► LogChecker ─► faults ──────────────────┐
//!                             └─► OpenCalls ─► one Story per call ─► text or JSON, as calls end
//! ```
//!
//! The file is read once, in order. Only open calls and a bounded number of faults are kept in memory.

mod findings;
mod json;
mod lines;
mod moment;
mod open_calls;
mod story;
mod text;

use crate::{cli::AuditArgs, exit::Exit, fault::Fault, input::Origin, shown::plain};
use findings::Findings;
use lines::LogLines;
use open_calls::{Entry, OpenCalls};
use std::io::{self, BufReader, BufWriter};
use story::Story;
use toolyard::{
    Event,
    event::{Line, LineError},
};

/// Writes the account: the report of the audit, as text or as JSON.
trait Account {
    /// Writes a call that has ended, or that is still open at the end of the log.
    fn call(&mut self, story: &Story) -> io::Result<()>;

    /// Writes an event that belongs to no call, or a late result. Skipped if the user asked for one session or call.
    fn happening(&mut self, event: &Event) -> io::Result<()>;

    /// Writes the verdict.
    fn close(&mut self, findings: &Findings) -> io::Result<()>;
}

/// Prints the account and the verdict.
pub(crate) fn audit(args: &AuditArgs) -> Result<Exit, Fault> {
    let origin = match args.file.as_os_str() == "-" {
        true => Origin::Stdin,
        false => Origin::File(args.file.clone()),
    };
    let mut lines = LogLines::new(BufReader::new(origin.reader()?));
    let out = BufWriter::new(io::stdout().lock());
    let mut account: Box<dyn Account> = match args.json {
        true => Box::new(json::Json::new(out)),
        false => Box::new(text::Text::new(out)),
    };
    let mut reading = Reading { args, open_calls: OpenCalls::default(), findings: Findings::default() };
    let stopped = reading.read_all(&mut lines, account.as_mut());
    if let Err(Stopped::Output(error)) = stopped {
        return Err(Fault::results(error));
    }
    reading.findings.unreadable = match &stopped {
        Err(Stopped::Line(number, why)) => Some((*number, why.clone())),
        _ => None,
    };
    reading.end(account.as_mut()).map_err(Fault::results)?;
    match stopped {
        Err(Stopped::Line(number, why)) => Err(origin.line_fault(number, plain(&why))),
        _ if reading.findings.is_whole() => Ok(Exit::Ok),
        _ => Ok(Exit::CallFailed),
    }
}

/// Why reading stopped before the end of the log.
enum Stopped {
    /// This line does not belong in a log.
    Line(usize, String),
    /// The account could not be written.
    Output(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The state of reading a log.
struct Reading<'a> {
    args: &'a AuditArgs,
    open_calls: OpenCalls,
    findings: Findings,
}

impl Reading<'_> {
    fn read_all(&mut self, lines: &mut LogLines, account: &mut dyn Account) -> Result<(), Stopped> {
        while let Some(line) = lines.next() {
            let text = match line.text {
                Ok(text) => text,
                Err(_) if line.is_torn => {
                    self.findings.torn(line.number);
                    continue;
                }
                Err(why) => return Err(Stopped::Line(line.number, why.to_string())),
            };
            match Line::read(text) {
                Ok(Line::Event(event)) => self.event(line.number, *event, account)?,
                Ok(Line::Stranger(stranger)) => self.findings.pass_over(line.number, &stranger),
                Ok(_) => {}
                Err(LineError::NotJson(_)) if line.is_torn => self.findings.torn(line.number),
                Err(why) => return Err(Stopped::Line(line.number, why.to_string())),
            }
        }
        match self.findings.counts().events {
            0 => Err(Stopped::Line(lines.number(), "it contains no events".to_owned())),
            _ => Ok(()),
        }
    }

    fn event(&mut self, number: usize, event: Event, account: &mut dyn Account) -> io::Result<()> {
        self.findings.read(number, &event);
        match self.open_calls.read(number, event) {
            Some(Entry::Call(story)) if self.is_selected(&story) => account.call(&story),
            Some(Entry::Happening(event)) if !self.is_filtered() => account.happening(&event),
            _ => Ok(()),
        }
    }

    /// Writes the calls that are still open, and the verdict.
    fn end(&mut self, account: &mut dyn Account) -> io::Result<()> {
        for story in std::mem::take(&mut self.open_calls).open() {
            if self.is_selected(&story) {
                account.call(&story)?;
            }
        }
        self.findings.end();
        account.close(&self.findings)
    }

    fn is_filtered(&self) -> bool {
        self.args.session.is_some() || self.args.call.is_some()
    }

    fn is_selected(&self, story: &Story) -> bool {
        let is = |asked: &Option<String>, has: &str| asked.as_ref().is_none_or(|asked| asked == has);
        is(&self.args.session, story.session.as_str()) && is(&self.args.call, story.call_id())
    }
}
