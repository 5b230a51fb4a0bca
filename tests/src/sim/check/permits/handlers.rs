//! I11, I3: the permits in use are those that existing handlers hold.

use super::{Table, table::EntryState};
use crate::sim::{
    Entry, Fact,
    check::{Violation, handlers::Handlers, recording::Recording},
    program::{Index, Placement},
};
use toolyard::ToolClass;

/// A handler starts a little after its grant, and its permit returns a little after its end. Within this time the two
/// counts agree at least once.
const LAG_US: u64 = 2_000_000;

/// Compares the permits in use with the running handlers.
#[derive(Debug, Default)]
pub(super) struct PermitCheck {
    handlers: Handlers,
    /// The calls that wait with their permits for the record of their attempt (SM-4).
    recording: Recording,
    /// For each class, since when more permits are in use than handlers may hold.
    over_since: [Option<u64>; ToolClass::ALL.len()],
}

impl PermitCheck {
    /// Compares after the next entry of the journal.
    pub(super) fn next(&mut self, index: &Index<'_>, table: &Table<'_>, entry: &Entry) -> Vec<Violation> {
        if let Fact::Handler(node, step) = entry.fact {
            self.handlers.apply(node, step);
        }
        self.handlers.follow(&entry.fact);
        self.recording.follow(&entry.fact);
        let may_differ = match &entry.fact {
            Fact::Handler(..) | Fact::Permits(_) | Fact::Recorded(..) => true,
            Fact::Event(event) => event.kind.is_terminal(),
            _ => false,
        };
        if !may_differ {
            return Vec::new();
        }
        ToolClass::ALL
            .into_iter()
            .filter_map(|class| self.of_class(index, table, entry.at_us, class))
            .collect()
    }

    fn of_class(
        &mut self,
        index: &Index<'_>,
        table: &Table<'_>,
        at_us: u64,
        class: ToolClass,
    ) -> Option<Violation> {
        let in_use = in_use(table, class);
        let of_class = self.handlers.all(index).filter(|(_, node)| node.class() == Some(class));
        let (mut at_least, mut at_most) = (0, 0);
        for (state, node) in of_class {
            // A read handler that was given up holds nothing, but the journal does not show at once when that happens.
            let may_be_given_up = node.tool.is_some_and(|tool| tool.placement == Placement::Blocking);
            at_least += usize::from(state.is_active() && !may_be_given_up);
            // A handler that was parked when its call ended keeps its lease, if it cannot be dropped.
            at_most += usize::from(!state.is_parked() || state.over);
        }
        let recording = self.recording.calls().filter_map(|number| index.nodes.get(&number));
        at_most += recording.filter(|node| node.class() == Some(class)).count();
        let since = &mut self.over_since[class.index()];
        match (in_use > at_most, *since) {
            (false, _) => *since = None,
            (true, None) => *since = Some(at_us),
            (true, Some(since)) if at_us > since + LAG_US => {
                let what = format!(
                    "since {since} us {in_use} {class} permits are in use, but only {at_most} handlers may hold them"
                );
                return Some(Violation::new("I11", what));
            }
            (true, Some(_)) => {}
        }
        (at_least > in_use).then(|| {
            let what =
                format!("at {at_us} us {at_least} {class} handlers run but only {in_use} permits are in use");
            Violation::new("I3", what)
        })
    }
}

/// How many permits of a class are in use.
fn in_use(table: &Table<'_>, class: ToolClass) -> usize {
    if class == ToolClass::Serial {
        let runs = |state| matches!(state, EntryState::Running | EntryState::Zombie);
        return table.entries.values().filter(|entry| runs(entry.state)).count();
    }
    let name = format!("class {class} ");
    table.units.iter().filter(|(unit, _)| unit.starts_with(&name)).map(|(_, unit)| unit.in_use).sum()
}
