//! The permit trace: every change of the admission table, as the engine reports it.

use super::journal::{Fact, Journal};
use std::{cell::RefCell, fmt, fmt::Write, rc::Rc};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
    subscriber::Interest,
};

/// The `tracing` target of these reports.
const TARGET: &str = "toolyard::permits";

/// One change of the table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PermitChange {
    /// What happened: grant, queue, cancel, refuse, park, resume, release, quiet, zombie, zombie_end; for a unit
    /// itself open, close, resize, pause.
    pub what: String,
    /// The units involved, in their new state.
    pub units: Vec<UnitState>,
    /// The lease involved.
    pub lease: Option<String>,
    /// Whether serial calls are paused; reported together with a lease.
    pub serial_paused: bool,
    /// The root session.
    pub root: Option<u64>,
    /// How many of the root session's calls are granted per round.
    pub weight: Option<u64>,
    /// The serial call involved.
    pub entry: Option<String>,
    /// Its nearest ancestor that holds a lease.
    pub lineage: Option<String>,
    /// The place in line; 0 for a call that has not waited.
    pub ticket: u64,
    /// How deep the call is nested.
    pub depth: u64,
    /// How many calls wait.
    pub waiting: u64,
}

/// The reported state of a counting unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitState {
    /// The bounded resource and its key.
    pub name: String,
    /// How many permits are in use.
    pub in_use: usize,
    /// How many permits exist.
    pub width: usize,
    /// Whether no permit may be granted.
    pub paused: bool,
}

impl UnitState {
    /// Parses `class read 0.1 3/4`, with or without a trailing `paused`.
    fn parse(text: &str) -> Option<Self> {
        let (text, paused) = unpaused(text);
        let (name, count) = text.rsplit_once(' ')?;
        let (in_use, width) = count.split_once('/')?;
        Some(Self { name: name.to_owned(), in_use: in_use.parse().ok()?, width: width.parse().ok()?, paused })
    }
}

fn unpaused(text: &str) -> (&str, bool) {
    text.strip_suffix(" paused").map_or((text, false), |text| (text, true))
}

impl Visit for PermitChange {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "root" => self.root = Some(value),
            "weight" => self.weight = Some(value),
            "ticket" => self.ticket = value,
            "depth" => self.depth = value,
            "waiting" => self.waiting = value,
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "what" {
            value.clone_into(&mut self.what);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(text, "{value:?}");
        match field.name() {
            "units" => self.units = text.split(", ").filter_map(UnitState::parse).collect(),
            "lease" => {
                let (lease, paused) = unpaused(&text);
                (self.lease, self.serial_paused) = (Some(lease.to_owned()), paused);
            }
            "entry" => self.entry = Some(text),
            "lineage" => self.lineage = Some(text),
            _ => {}
        }
    }
}

thread_local! {
    /// The journal of the run on this thread.
    static JOURNAL: RefCell<Option<Journal>> = const { RefCell::new(None) };
    /// The planted secret, which must not appear in anything traced on this thread.
    static SECRET: RefCell<Option<Rc<str>>> = const { RefCell::new(None) };
}

/// From now on, records the table changes of the engine on this thread in `journal`, and everything traced that
/// contains the secret.
pub(super) fn listen(journal: Option<Journal>, secret: Option<&str>) {
    JOURNAL.set(journal);
    SECRET.set(secret.map(Into::into));
}

/// Runs `run` while subscribed to the engine's traces.
pub(super) fn with_listener<T>(run: impl FnOnce() -> T) -> T {
    let _listening = crate::listen(Listener);
    run()
}

/// Listens to changes of the table and, if a secret is planted, searches all other traces for it.
struct Listener;

/// The text of all fields.
#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

/// Searches the fields of a span or event for the secret.
fn search(what: &str, record: impl FnOnce(&mut Fields)) {
    let Some(core) = SECRET.with_borrow(Clone::clone) else { return };
    let mut fields = Fields::default();
    record(&mut fields);
    if fields.0.contains(&*core) {
        note(Fact::Leaked(format!("{what}: {}", fields.0)));
    }
}

fn note(fact: Fact) {
    JOURNAL.with_borrow(|journal| {
        if let Some(journal) = journal {
            journal.note(fact);
        }
    });
}

impl Subscriber for Listener {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match metadata.target() {
            TARGET => Interest::always(),
            target if target.starts_with("toolyard") => Interest::sometimes(),
            _ => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET || SECRET.with_borrow(Option::is_some)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        search(span.metadata().name(), |fields| span.record(fields));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        search("a span", |fields| values.record(fields));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        if event.metadata().target() != TARGET {
            return search(event.metadata().name(), |fields| event.record(fields));
        }
        let mut change = PermitChange::default();
        event.record(&mut change);
        note(Fact::Permits(Box::new(change)));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
