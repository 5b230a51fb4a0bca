//! What a run writes beside its results: the events, a page of them, a trace.

use super::{results::Results, results_file::ResultsFile};
use crate::{
    cli::{ReportKind, RunArgs},
    error::Error,
    event_file::{EventFile, ProtectedFile},
    identity::Identity,
    input::Origin,
    page_file::PageFile,
    setup::Setup,
    stand_ins::RecordFile,
    trace::TraceFile,
};
use std::path::Path;
use toolyard::EngineBuilder;

/// The files that nothing may be written into.
#[derive(Debug, Default)]
struct Protected {
    files: Vec<ProtectedFile>,
}

impl Protected {
    fn of(args: &RunArgs, origin: &Origin, setup: &Setup) -> Self {
        let mut protected = Self::default();
        protected.add("the input", origin.identity());
        protected.add_file("the configuration", setup.config.file.as_deref());
        protected.add_file("the recorded results", args.stand_ins.replay.as_deref());
        protected
    }

    fn add(&mut self, what: &'static str, identity: Option<Identity>) {
        self.files.extend(identity.map(|identity| ProtectedFile { what, identity }));
    }

    fn add_file(&mut self, what: &'static str, path: Option<&Path>) {
        self.add(what, path.and_then(Identity::of_path));
    }
}

/// Where the results of episodes go. Tools cannot write the file.
///
/// # Errors
/// Those of [`ResultsFile::open`].
pub(super) fn results(args: &RunArgs, origin: &Origin, setup: &Setup) -> Result<Results, Error> {
    let Some(path) = &args.continued else { return Ok(Results::Stdout) };
    let file = ResultsFile::open(path, &Protected::of(args, origin, setup).files)?;
    setup.guard(file.path());
    Ok(Results::File(file))
}

/// The files that events go into, as far as they are asked for.
#[derive(Debug, Default)]
pub(super) struct Records {
    events: Option<EventFile>,
    page: Option<PageFile>,
    trace: Option<TraceFile>,
    calls: Option<RecordFile>,
}

impl Records {
    /// Opens the files. None of them may be another one, the input, the configuration or the results, and tools cannot
    /// write them.
    pub(super) fn open(args: &RunArgs, origin: &Origin, setup: &Setup) -> Result<Self, Error> {
        let mut protected = Protected::of(args, origin, setup);
        protected.add_file("the results", args.continued.as_deref());
        let events = EventFile::of(&args.events, &protected.files)?;
        protected.add_file("the events", events.as_ref().map(EventFile::path));
        let page = match &args.report {
            ReportKind::Html(path) => Some(PageFile::open(path, origin.to_string(), &protected.files)?),
            _ => None,
        };
        protected.add_file("the report", page.as_ref().map(PageFile::path));
        let trace = args.trace.as_deref().map(|path| TraceFile::open(path, &protected.files)).transpose()?;
        protected.add_file("the trace", trace.as_ref().map(TraceFile::path));
        let goes_on = args.continued.is_some();
        let calls = args.stand_ins.record.as_deref();
        let calls = calls.map(|path| RecordFile::open(path, goes_on, &protected.files)).transpose()?;
        let records = Self { events, page, trace, calls };
        records.guard(setup);
        Ok(records)
    }

    fn guard(&self, setup: &Setup) {
        self.events.iter().for_each(|file| setup.guard(file.path()));
        self.page.iter().for_each(|file| setup.guard(file.path()));
        self.trace.iter().for_each(|file| setup.guard(file.path()));
        self.calls.iter().for_each(|file| setup.guard(file.path()));
    }

    /// The file of the calls of real tools, if they are recorded.
    pub(super) fn calls(&self) -> Option<&RecordFile> {
        self.calls.as_ref()
    }

    /// Records the tools of servers, which a replay does not start.
    pub(super) fn declare(&self, setup: &Setup) {
        if let Some(calls) = &self.calls {
            calls.begin(setup.server_tools().iter().map(|tool| tool.spec()));
        }
    }

    /// Gives each file all events of the engine.
    pub(super) fn attach(&self, mut builder: EngineBuilder) -> EngineBuilder {
        if let Some(events) = &self.events {
            builder = builder.event_writer(events.clone());
        }
        if let Some(page) = &self.page {
            builder = builder.event_writer(page.clone());
        }
        if let Some(trace) = &self.trace {
            builder = builder.event_writer(trace.clone());
        }
        builder
    }

    /// Writes the rest of each file, and says where the page is.
    ///
    /// # Errors
    /// One for each file that could not be written.
    pub(super) fn finish(&self) -> Vec<Error> {
        let mut errors = Vec::new();
        errors.extend(self.events.as_ref().and_then(|file| file.finish().err()));
        errors.extend(self.trace.as_ref().and_then(|file| file.finish().err()));
        errors.extend(self.calls.as_ref().and_then(|file| file.finish().err()));
        if let Some(page) = &self.page {
            match page.finish() {
                Ok(()) => anstream::eprintln!("toolyard: the report is in {}", page.path().display()),
                Err(error) => errors.push(error),
            }
        }
        errors
    }
}
