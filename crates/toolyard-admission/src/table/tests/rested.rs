//! What holds of a table between two changes: nobody who could start waits, and each lane is listed where it has to be.

use super::*;
use crate::store::group::Sleep;

/// Checks every lane of a table that owes nothing to a later slice.
pub(super) fn assert_rested<W: PlaceInLine>(table: &Table<W>) {
    if !table.backlog.is_empty() {
        return;
    }
    let open = (0..).map_while(|at| (at < table.lanes.slots()).then_some(at));
    for at in open.filter(|at| table.lanes.get(*at).is_some()) {
        let lane = table.lanes.open_one(at);
        assert!(!table.can_start(&lane.key, Some(at)), "{:?} could start and waits", lane.key);
        if let Some(sleep) = lane.asleep {
            assert!(
                table.lacks(&lane.key, at).any(|lack| lack == sleep.at),
                "{:?} sleeps too long",
                lane.key
            );
        }
        assert_listed(table, at);
    }
}

fn assert_listed<W: PlaceInLine>(table: &Table<W>, at: u32) {
    let lane = table.lanes.open_one(at);
    let units = lane.key.need.units().map(Resource::Unit);
    let is_call = matches!(lane.key.who, Who::Call { .. });
    let lease = lane.key.need.lease().filter(|_| is_call).map(Resource::Lease);
    for resource in units.chain(lease) {
        let queue = match resource {
            Resource::Unit(unit) => table.unit(unit).queue.as_deref(),
            Resource::Lease(lease) => table.leases.get(lease).queue.as_deref(),
        };
        let queue = queue.expect("a lane is in the queue of all it needs");
        let reach = table.reach(resource);
        let number = lane.listed().unwrap();
        let is_listed = match lane.key.who {
            Who::Call { root, .. } => {
                let group = lane.groups.at(reach);
                let ring =
                    queue.rings().any(|(other, ring)| other == group && ring.values().any(|r| *r == root));
                let listed =
                    queue.lanes_of(root, group).any(|(_, head, other)| (head, other) == (number, at));
                assert!(ring || !listed);
                listed
            }
            Who::Resume { .. } => queue.resumes().any(|(_, lanes)| lanes.contains(&(number, at))),
        };
        assert_eq!(is_listed, Sleep::is_listed(lane.asleep, reach), "{:?} at {resource:?}", lane.key);
        let sleeps = lane.asleep.is_some_and(|sleep| sleep.at == resource);
        assert_eq!(queue.asleep.contains(&at), sleeps, "{:?} at {resource:?}", lane.key);
    }
}
