//! The recorder of a program: slow, and failing now and then. What it is given is in the journal. In a run of several lives
//! it also has what the next one needs.

use super::{Stage, life::Life};
use crate::sim::{
    Dice,
    journal::{Fact, Journal},
    program::RecorderPlan,
};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use toolyard::{
    Durable, MemoryRecord, MemoryRecorder, OpenTurn, Pace, Past, PastTurn, RecordError, Recorder,
    ResumeRecord, SessionId, event::Epoch,
};

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

/// A ledger, which decides when a record is durable and which the next life has, beside a recorder by which the journal of
/// the run knows of it.
pub(super) struct Both {
    journal: Journal,
    life: Life,
    noted: MemoryRecorder,
    /// What the ledger has said of the record that is being noted.
    pace: Arc<Mutex<Pace>>,
}

impl Both {
    pub(super) fn new(stage: &Stage, life: &Life) -> Self {
        let pace = Arc::new(Mutex::new(Pace::Nothing));
        let (next, journal) = (pace.clone(), stage.journal.clone());
        let noted = MemoryRecorder::paced(move |record| {
            let pace = *next.lock();
            journal.note(Fact::Recorded(Box::new(record.clone()), pace));
            pace
        });
        Self { journal: stage.journal.clone(), life: life.clone(), noted, pace }
    }

    fn give(&self, give: impl Fn(&dyn Recorder) -> Durable) -> Durable {
        let after = self.life.next_pace();
        let durable = give(self.life.ledger());
        *self.pace.lock() = match durable {
            Durable::Nothing => Pace::Nothing,
            Durable::When(_) => Pace::After(after),
        };
        drop(give(&self.noted));
        durable
    }
}

impl Recorder for Both {
    fn outlives_engine(&self) -> bool {
        true
    }

    fn begin(&self, epoch: Epoch) {
        self.life.ledger().begin(epoch);
    }

    fn past(&self, session: &SessionId) -> Result<Past, RecordError> {
        self.life.ledger().past(session)
    }

    fn open_turns(&self) -> Result<Vec<OpenTurn>, RecordError> {
        self.life.ledger().open_turns()
    }

    fn turn(&self, session: &SessionId, turn: u64) -> Result<Option<PastTurn>, RecordError> {
        self.life.ledger().turn(session, turn)
    }

    fn resumed(&self, record: &ResumeRecord<'_>) -> Durable {
        self.life.next_pace();
        let durable = self.life.ledger().resumed(record);
        self.journal.note(Fact::TakingUp(record.session.to_string(), record.turn));
        durable
    }

    crate::gives_records!();

    fn flush(&self) -> Durable {
        self.life.ledger().flush()
    }
}
