//! What each episode came to.

use super::{Turn, json::ms, timeline::Timeline};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

/// The number of episodes that are listed, those that start first; later ones are only counted.
const EPISODES_MAX: usize = 100_000;

const ID_CHARS: usize = 200;

/// The episodes of a run.
#[derive(Debug, Default)]
pub(super) struct Episodes {
    by_place: BTreeMap<u64, Episode>,
    /// Those that have ended.
    ended: u64,
    left_out: u64,
    /// Those that an earlier run has done, and their turns.
    kept: (u64, u64),
}

/// An episode.
#[derive(Debug)]
struct Episode {
    id: Box<str>,
    turns: u64,
    calls: u64,
    failed: u64,
    /// Since the engine was built.
    began: Duration,
    ended: Duration,
    has_ended: bool,
}

impl Episodes {
    /// None yet, beside those that an earlier run has done, with so many turns.
    pub(super) fn after(episodes: u64, turns: u64) -> Self {
        Self { kept: (episodes, turns), ..Self::default() }
    }

    /// Adds a turn.
    pub(super) fn add(&mut self, turn: &Turn, timeline: &Timeline) {
        if self.by_place.len() == EPISODES_MAX && !self.by_place.contains_key(&turn.place) {
            return;
        }
        let began = timeline.began.unwrap_or_default();
        let episode = self.by_place.entry(turn.place).or_insert_with(|| Episode {
            id: turn.episode.chars().take(ID_CHARS).collect::<String>().into(),
            turns: 0,
            calls: 0,
            failed: 0,
            began,
            ended: began,
            has_ended: false,
        });
        episode.turns += 1;
        episode.calls += timeline.spans.len() as u64;
        episode.failed += timeline.failed() as u64;
        episode.ended = episode.ended.max(began + timeline.wall());
    }

    /// The episode at this place has ended.
    pub(super) fn end(&mut self, place: u64) {
        self.ended += 1;
        let is_full = self.by_place.len() == EPISODES_MAX;
        match self.by_place.get_mut(&place) {
            Some(episode) => episode.has_ended = true,
            // Otherwise it has no turns.
            None => self.left_out += u64::from(is_full),
        }
    }

    /// The number of episodes that have ended.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    /// Whether an earlier run has done some.
    pub(super) fn has_kept(&self) -> bool {
        self.kept.0 > 0
    }

    /// Adds what is known of episodes to a report.
    pub(super) fn add_to(&self, report: &mut Value) {
        let listed = self.by_place.values().filter(|episode| episode.has_ended);
        report["episodes"] = listed.map(Episode::json).collect();
        report["episodes_ended"] = self.ended.into();
        report["episodes_left_out"] = self.left_out.into();
        report["kept"] = json!({"episodes": self.kept.0, "turns": self.kept.1});
    }
}

impl Episode {
    fn json(&self) -> Value {
        json!({
            "id": self.id.as_ref(), "turns": self.turns, "calls": self.calls, "failed": self.failed,
            "wall_ms": ms(self.ended.saturating_sub(self.began)),
        })
    }
}
