//! The recorder of a program: slow, and failing now and then. What it is given is in the journal.

use super::Stage;
use crate::sim::{Dice, journal::Fact, program::RecorderPlan};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use toolyard::{MemoryRecord, MemoryRecorder, Pace};

/// Longer than anybody waits.
const LATE: Duration = Duration::from_secs(3600);

pub(super) fn scripted(stage: &Arc<Stage>, plan: RecorderPlan) -> MemoryRecorder {
    let (stage, dice) = (stage.clone(), Mutex::new(Dice::new(plan.seed, 1)));
    let recorder = MemoryRecorder::paced(move |record| {
        let pace = pace(&mut dice.lock(), plan, record);
        stage.journal.note(Fact::Recorded(Box::new(record.clone()), pace));
        pace
    });
    if plan.durable { recorder.outliving() } else { recorder }
}

fn pace(dice: &mut Dice, plan: RecorderPlan, record: &MemoryRecord) -> Pace {
    let after = Duration::from_millis(dice.range(0..=plan.most_ms));
    let (fails, is_late) = (dice.chance(plan.fails), dice.chance(plan.late));
    match record {
        MemoryRecord::Attempt { must_wait: false, .. } | MemoryRecord::Ended { must_wait: false, .. }
            if !plan.reads_wait =>
        {
            Pace::Nothing
        }
        _ if is_late => Pace::Fails(LATE),
        _ if fails => Pace::Fails(after),
        _ => Pace::After(after),
    }
}
