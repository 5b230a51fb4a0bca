//! `toolyard audit`: reports what an event log says about every call, and whether the log is whole.
//!
//! ```text
//!   parts ─► LogLines ─► Line ─┬─► LogChecker ─► faults ──────────────────┐
//!                              └─► OpenCalls ─► one Story per call ─► text or JSON, as calls end
//! ```
//!
//! The files are read once, in order. Only open calls and a bounded number of faults are kept in memory.

mod findings;
mod json;
pub(crate) mod lines;
pub(crate) mod moment;
mod open_calls;
mod places;
mod story;
mod text;

use crate::{cli::AuditArgs, display::plain, error::Error, event_file::parts, exit::Exit, input::Origin};
use findings::Findings;
use lines::LogLines;
use open_calls::{Entry, OpenCalls};
use places::{Place, Places};
use std::io::{self, BufWriter};
use story::Story;
use toolyard::{Event, EventKind, event::Line, event::LineError};

/// Writes the account: the report of the audit, as text or as JSON.
trait Account {
    /// Writes a call that has ended, or that is still open at the end of the log.
    fn call(&mut self, story: &Story, place: &Place) -> io::Result<()>;

    /// Writes an event that belongs to no call, or a late result. Skipped if the user asked for one session or call.
    fn happening(&mut self, event: &Event) -> io::Result<()>;

    /// Writes the verdict.
    fn close(&mut self, findings: &Findings) -> io::Result<()>;
}

/// Prints the account and the verdict.
pub(crate) fn audit(args: &AuditArgs) -> Result<Exit, Error> {
    let (origin, files) = match args.file.as_os_str() == "-" {
        true => (Origin::Stdin, Vec::new()),
        false => (Origin::File(args.file.clone()), parts::all(&args.file)?),
    };
    let mut lines = LogLines::of(&origin, &files)?;
    let out = BufWriter::new(io::stdout().lock());
    let mut account: Box<dyn Account> = match args.json {
        true => Box::new(json::Json::new(out)),
        false => Box::new(text::Text::new(out)),
    };
    let findings = Findings::of(Places::of(&files));
    let mut reading = Reading { args, open_calls: OpenCalls::default(), findings };
    let stopped = reading.read_all(&mut lines, account.as_mut());
    if let Err(Stopped::Output(error)) = stopped {
        return Err(Error::results(error));
    }
    reading.findings.unreadable = match &stopped {
        Err(Stopped::Line(number, why)) => Some((reading.findings.places.of_line(*number), why.clone())),
        _ => None,
    };
    reading.end(account.as_mut()).map_err(Error::results)?;
    match &reading.findings.unreadable {
        Some((Place { file, line }, why)) => {
            let origin = file.as_ref().map_or(origin, |file| Origin::File(file.into()));
            Err(origin.line_error(*line, plain(why)))
        }
        None if reading.findings.is_whole() => Ok(Exit::Ok),
        None => Ok(Exit::CallFailed),
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
        // A line that cannot be read, unless the next one is the start of an engine: then the last one was stopped in it.
        let mut broken: Option<(usize, String)> = None;
        while let Some(line) = lines.next() {
            let (number, is_torn) = (line.number, line.is_torn);
            let read = match line.text {
                Ok(text) => {
                    Line::read(text).map_err(|why| (matches!(why, LineError::NotJson(_)), why.to_string()))
                }
                Err(why) => Err((why.may_be_torn(), why.to_string())),
            };
            self.findings.places.opened(lines.starts());
            let starts = matches!(&read, Ok(Line::Event(event)) if is_start(event));
            match broken.take() {
                Some((broken, _)) if starts => self.findings.torn(broken),
                Some((broken, why)) => return Err(Stopped::Line(broken, why)),
                None => {}
            }
            match read {
                Ok(Line::Event(event)) => self.event(number, *event, account)?,
                Ok(Line::Stranger(stranger)) => self.findings.pass_over(number, &stranger),
                Ok(_) => {}
                Err((true, _)) if is_torn => self.findings.torn(number),
                Err((true, why)) => broken = Some((number, why)),
                Err((false, why)) => return Err(Stopped::Line(number, why)),
            }
        }
        self.findings.places.opened(lines.starts());
        if let Some((broken, why)) = broken {
            return Err(Stopped::Line(broken, why));
        }
        match self.findings.counts().events {
            0 => Err(Stopped::Line(lines.number(), "it contains no events".to_owned())),
            _ => Ok(()),
        }
    }

    fn event(&mut self, number: usize, event: Event, account: &mut dyn Account) -> io::Result<()> {
        if is_start(&event) {
            self.end_life(account)?;
        }
        self.findings.read(number, &event);
        match self.open_calls.read(number, event) {
            Some(Entry::Call(story)) => self.call(&story, account),
            Some(Entry::Happening(event)) if !self.is_filtered() => account.happening(&event),
            _ => Ok(()),
        }
    }

    fn call(&self, story: &Story, account: &mut dyn Account) -> io::Result<()> {
        match self.is_selected(story) {
            true => account.call(story, &self.findings.places.of_line(story.line)),
            false => Ok(()),
        }
    }

    /// Writes the calls that are still open at the end of an engine's life.
    fn end_life(&mut self, account: &mut dyn Account) -> io::Result<()> {
        std::mem::take(&mut self.open_calls).open().try_for_each(|story| self.call(&story, account))
    }

    /// Writes the calls that are still open, and the verdict.
    fn end(&mut self, account: &mut dyn Account) -> io::Result<()> {
        self.end_life(account)?;
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

/// Whether the event begins a new life of the engine.
fn is_start(event: &Event) -> bool {
    matches!(event.kind, EventKind::EngineStarted { .. })
}
