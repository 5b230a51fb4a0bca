//! What a run of the harness has found.

use std::{ops::AddAssign, time::Instant};

#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    pub(crate) scenes: usize,
    pub(crate) kills: usize,
    pub(crate) lives: usize,
    pub(crate) helped: usize,
    pub(crate) calls: usize,
    pub(crate) acknowledged: usize,
    pub(crate) interrupted: usize,
    pub(crate) reconciled: usize,
    pub(crate) suspended: usize,
    pub(crate) asked: usize,
    pub(crate) asked_again: usize,
    pub(crate) recalled: usize,
    pub(crate) twice: usize,
    pub(crate) lost: usize,
    pub(crate) cancelled_run: usize,
    pub(crate) unapproved: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.scenes += other.scenes;
        self.kills += other.kills;
        self.lives += other.lives;
        self.helped += other.helped;
        self.calls += other.calls;
        self.acknowledged += other.acknowledged;
        self.interrupted += other.interrupted;
        self.reconciled += other.reconciled;
        self.suspended += other.suspended;
        self.asked += other.asked;
        self.asked_again += other.asked_again;
        self.recalled += other.recalled;
        self.twice += other.twice;
        self.lost += other.lost;
        self.cancelled_run += other.cancelled_run;
        self.unapproved += other.unapproved;
    }
}

pub(crate) struct Tally {
    name: &'static str,
    began: Instant,
    pub(crate) counts: Counts,
    pub(crate) faults: Vec<String>,
    /// The scene in which the first fault was found, from 1 on.
    first: Option<usize>,
}

/// How many faults end a run.
const FAULTS_MAX: usize = 10;

impl Tally {
    #[expect(clippy::disallowed_methods, reason = "shows how long a run took; no test asks")]
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, began: Instant::now(), counts: Counts::default(), faults: Vec::new(), first: None }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.counts += other.counts;
        if !other.faults.is_empty() {
            self.first.get_or_insert(self.counts.scenes);
        }
        self.faults.extend(other.faults.into_iter().map(|fault| format!("{}: {fault}", other.name)));
        assert!(self.faults.len() < FAULTS_MAX, "{}", self.text());
    }

    fn text(&self) -> String {
        let Counts { scenes, kills, lives, helped, calls, acknowledged, interrupted, reconciled, .. } =
            &self.counts;
        let Counts {
            suspended, asked, asked_again, recalled, twice, lost, cancelled_run, unapproved, ..
        } = &self.counts;
        let seconds = self.began.elapsed().as_secs();
        let mut text = format!(
            "{}: {scenes} scenes, {kills} kills, {lives} lives, {helped} left programs, {calls} calls, {acknowledged} acknowledged, \
             {interrupted} interrupted, {reconciled} reconciled, {suspended} suspended, {asked} asked, \
             {asked_again} asked again, {recalled} started under earlier answers, effects twice: {twice}, \
             results lost: {lost}, cancelled calls run: {cancelled_run}, not approved: {unapproved}, {seconds} s",
            self.name
        );
        if let Some(scene) = self.first {
            text.push_str(&format!(", the first fault in scene {scene}"));
        }
        for fault in &self.faults {
            text.push_str("\n  ");
            text.push_str(fault);
        }
        text
    }

    /// Shows the counts.
    ///
    /// # Panics
    /// If there is a fault.
    pub(crate) fn finish(self) {
        println!("{}", self.text());
        assert!(self.faults.is_empty(), "{}", self.text());
    }
}
