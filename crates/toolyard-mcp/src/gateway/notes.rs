//! The notifications about one call that its client has yet to get. Bounded, and pure.

use rmcp::model::{LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use std::collections::VecDeque;

/// Maximum number of characters that wait for one call; of more, the last ones are kept.
const CHARS_MAX: usize = 4096;

/// Maximum number of waiting notes of a server, of either kind; of more, the last ones are kept.
const NOTES_MAX: usize = 256;

/// The pending notifications of one call.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The client's progress token, if it wants progress.
    token: Option<ProgressToken>,
    text: VecDeque<char>,
    /// All characters so far: a progress value that only grows.
    total: u64,
    reported: u64,
    steps: VecDeque<ProgressNotificationParam>,
    /// The progress that a server has reported. If there is one, the call's output does not count as progress.
    reached: Option<f64>,
    logs: VecDeque<LoggingMessageNotificationParam>,
}

impl Notes {
    pub(super) fn new(token: Option<ProgressToken>) -> Self {
        Self { token, ..Self::default() }
    }

    /// Adds output of the call.
    pub(super) fn add_text(&mut self, text: &str) {
        if self.token.is_none() || self.reached.is_some() {
            return;
        }
        for c in text.chars() {
            push(&mut self.text, c, CHARS_MAX);
            self.total += 1;
        }
    }

    /// Adds a server's progress, under the client's own token. Progress that does not grow is dropped: a call that is
    /// retried starts again from the beginning.
    pub(super) fn add_step(&mut self, mut step: ProgressNotificationParam) {
        let Some(token) = &self.token else { return };
        if self.reached.is_some_and(|reached| step.progress <= reached) {
            return;
        }
        self.reached = Some(step.progress);
        step.progress_token = token.clone();
        push(&mut self.steps, step, NOTES_MAX);
    }

    /// Adds a line of a server's log.
    pub(super) fn add_log(&mut self, log: LoggingMessageNotificationParam) {
        push(&mut self.logs, log, NOTES_MAX);
    }

    /// Takes the next line of a log.
    pub(super) fn next_log(&mut self) -> Option<LoggingMessageNotificationParam> {
        self.logs.pop_front()
    }

    /// Takes the next progress of a server.
    pub(super) fn next_step(&mut self) -> Option<ProgressNotificationParam> {
        self.steps.pop_front()
    }

    /// Takes the call's output since the last time, as progress.
    pub(super) fn output(&mut self) -> Option<ProgressNotificationParam> {
        let token = self.token.clone().filter(|_| self.total > self.reported)?;
        self.reported = self.total;
        #[allow(clippy::cast_precision_loss, reason = "no call has 2^53 characters of output")]
        let progress = ProgressNotificationParam::new(token, self.total as f64);
        Some(progress.with_message(self.text.drain(..).collect::<String>()))
    }
}

/// Adds to a queue, which drops its oldest entry if it is full.
fn push<T>(queue: &mut VecDeque<T>, new: T, max: usize) {
    if queue.len() == max {
        queue.pop_front();
    }
    queue.push_back(new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    fn wanted() -> Notes {
        Notes::new(Some(ProgressToken(NumberOrString::Number(1))))
    }

    /// If more is put out than can wait, the last part is kept, and progress counts all of it.
    #[test]
    fn what_waits_is_bounded_and_progress_grows() {
        let mut notes = wanted();
        notes.add_text(&"a".repeat(CHARS_MAX));
        notes.add_text("bc");
        let reported = notes.output().unwrap();
        let text = reported.message.unwrap();
        assert_eq!((text.len(), reported.progress), (CHARS_MAX, 4098.0));
        assert!(text.ends_with("abc"));
        assert!(notes.output().is_none());
    }

    /// A server's progress is passed on under the client's token, and never goes backwards.
    #[test]
    fn steps_of_a_server_are_passed_on_as_they_are() {
        let mut notes = wanted();
        let theirs = ProgressToken(NumberOrString::Number(7));
        for progress in [0.0, 50.0, 50.0, 10.0, 100.0] {
            notes.add_step(ProgressNotificationParam::new(theirs.clone(), progress).with_total(100.0));
            notes.add_text("the same as text");
        }
        let reported: Vec<_> = std::iter::from_fn(|| notes.next_step()).collect();
        assert_eq!(reported.iter().map(|step| step.progress).collect::<Vec<_>>(), [0.0, 50.0, 100.0]);
        assert!(reported.iter().all(|step| step.progress_token == ProgressToken(NumberOrString::Number(1))));
        assert!(notes.output().is_none());
    }

    /// A client that did not ask for progress gets none.
    #[test]
    fn a_client_that_did_not_ask_gets_no_progress() {
        let mut notes = Notes::new(None);
        notes.add_text("a");
        notes.add_step(ProgressNotificationParam::new(ProgressToken(NumberOrString::Number(7)), 1.0));
        assert!(notes.output().is_none() && notes.next_step().is_none());
    }
}
