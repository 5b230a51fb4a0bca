//! What a batch shows of its calls, without secrets: their errors, streamed output and arguments.

use crate::call::{batch::BatchState, in_flight::InFlight, streamed::Streamed};
use serde_json::Value;
use toolyard_core::{CallError, EventKind, Outcome};
use toolyard_redact::{Redactor, Stream};

impl BatchState {
    /// The error without secrets, as its caller gets it.
    pub(crate) fn redacted_error(&self, mut error: CallError) -> CallError {
        if let Some(redactor) = &self.session.engine.results_redactor {
            self.session.given_marks().add(redactor.error(&mut error));
        }
        error
    }

    /// The arguments of a question as events show them. The approver sees more of them.
    pub(crate) fn redacted_arguments(&self, args: &Value) -> String {
        let redactor = self.session.engine.redactor.as_ref();
        redactor.map_or_else(|| args.to_string(), |redactor| redactor.value(args).to_string())
    }

    /// Takes secrets out of outcomes. Only the arguments are left to look at: everything else was redacted when it
    /// was produced.
    pub(crate) fn redact<'a>(
        redactor: Option<&Redactor>,
        outcomes: impl IntoIterator<Item = &'a mut Outcome>,
    ) {
        if let Some(redactor) = redactor {
            for outcome in outcomes {
                // The model has sent them: it is given no mark that it could send back in good faith.
                let _marks = redactor.arguments(&mut outcome.arguments);
            }
        }
    }
}

impl InFlight<'_> {
    /// Emits streamed output of a running attempt, without secrets. The caller holds the call's life.
    pub(crate) fn stream(self, attempt: u32, redactor: &Redactor, text: &str) {
        if !self.engine().bus.is_listening() {
            return;
        }
        let rare = self.slot().make_rare();
        let of_attempt = rare.take_streamed().filter(|streamed| streamed.attempt == attempt);
        let mut streamed =
            of_attempt.unwrap_or_else(|| Box::new(Streamed { attempt, stream: Stream::default() }));
        if let Some(text) = streamed.stream.push(redactor, text) {
            self.emit(Some(attempt), || EventKind::OutputDelta { text });
        }
        rare.hold_back(streamed);
    }

    /// Emits the rest of an attempt's output, which was held back. The caller holds the call's life.
    #[inline(always)]
    pub(crate) fn stream_ends(self) {
        let Some(redactor) = &self.engine().redactor else { return };
        let Some(rare) = self.slot().rare() else { return };
        let Some(streamed) = rare.take_streamed() else { return };
        let Streamed { attempt, stream } = *streamed;
        if let Some(text) = stream.finish(redactor) {
            self.emit(Some(attempt), || EventKind::OutputDelta { text });
        }
    }
}
