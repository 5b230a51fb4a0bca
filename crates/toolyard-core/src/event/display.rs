//! An event as one plain line, for people (KT-5).

use super::{Event, EventKind};
use crate::{is_plain, json_escape};
use std::fmt::{self, Display, Formatter, Write as _};

/// How many characters of a name are shown.
const NAME_CHARS_MAX: usize = 80;

/// How many characters of a text are shown.
const TEXT_CHARS_MAX: usize = 200;

/// One plain line: when, where, the event's name, and what is most worth knowing of it (KT-5). Times are seconds from the
/// engine's start. What is not plain is escaped as in JSON, and what is long is cut, so that a line has no more than a few
/// hundred characters: for logs and terminals. Programs read the JSON.
///
/// # Examples
/// ```
/// use toolyard_core::{AgentPath, Event, EventKind, SessionId};
/// let kind = EventKind::OutputDelta { text: "half\n".to_owned() };
/// let mut event = Event::new(SessionId::from("demo"), AgentPath::root(), kind);
/// (event.mono_us, event.turn, event.call_id, event.attempt) = (1_250_000, Some(1), Some("call_1".into()), Some(1));
/// let line = event.to_string();
/// assert_eq!(line, r#"1.250000 demo turn 1 call call_1 attempt 1 tool.output_delta "half\u000a""#);
/// ```
impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:06} {}",
            self.mono_us / 1_000_000,
            self.mono_us % 1_000_000,
            name(self.session.as_str())
        )?;
        if self.agent != crate::AgentPath::root() {
            write!(f, " agent {}", name(self.agent.as_str()))?;
        }
        if let Some(turn) = self.turn {
            write!(f, " turn {turn}")?;
        }
        if let Some(call) = &self.call_id {
            write!(f, " call {}", name(call.as_str()))?;
        }
        if let Some(attempt) = self.attempt {
            write!(f, " attempt {attempt}")?;
        }
        write!(f, " {}", self.kind.name())?;
        if let Some(tool) = self.kind.tool_name() {
            write!(f, " {}", name(tool))?;
        }
        details(&self.kind, f)
    }
}

fn details(kind: &EventKind, f: &mut Formatter<'_>) -> fmt::Result {
    match kind {
        EventKind::Received { bytes, .. } => write!(f, " {bytes} bytes"),
        EventKind::InputInvalid(failure) | EventKind::Denied(failure) | EventKind::Failed(failure) => {
            write!(f, " {} {}", failure.code, text(&failure.message))
        }
        EventKind::Completed { duration_ms, bytes, dedupe, .. } => {
            write!(f, " {duration_ms} ms {bytes} bytes")?;
            if dedupe.is_fresh() { Ok(()) } else { f.write_str(" shared") }
        }
        EventKind::ConfirmationRequested(request) => write!(f, " {}", text(&request.input_summary)),
        EventKind::ConfirmationResolved(resolution) => {
            f.write_str(if resolution.approved { " approved" } else { " not approved" })?;
            resolution.who.iter().try_for_each(|who| write!(f, " by {}", name(who)))
        }
        EventKind::Called { class, queue_ms, .. } => write!(f, " {class} waited {queue_ms} ms"),
        EventKind::OutputDelta { text: delta } => write!(f, " {}", text(delta)),
        EventKind::Retry { delay_ms, code } => write!(f, " after {code} in {delay_ms} ms"),
        EventKind::LateResult { ok } => f.write_str(if *ok { " ok" } else { " failed" }),
        EventKind::BreakerTransition { backend, from, to, .. } => {
            backend.iter().try_for_each(|backend| write!(f, " backend {}", name(backend)))?;
            write!(f, " {from} to {to}")
        }
        EventKind::ZombiesReleased { count, .. } => write!(f, " {count}"),
        EventKind::PolicyChanged { version } => write!(f, " version {version}"),
        EventKind::PoolResized { class, from, to } => write!(f, " {class} {from} to {to}"),
        EventKind::TurnStarted { calls } => calls.iter().try_for_each(|calls| write!(f, " {calls} calls")),
        EventKind::TurnEnded { ok, failed } => write!(f, " {ok} ok {failed} failed"),
        EventKind::AgentForked { child } | EventKind::AgentJoined { child } => write!(f, " {}", name(child)),
        EventKind::EngineStarted { version, epoch } => write!(f, " {} {epoch}", name(version)),
        EventKind::SessionRecovered { epoch, interrupted, open } => {
            write!(f, " {epoch} {interrupted} interrupted {open} open")
        }
        EventKind::EngineDrain { step } => write!(f, " {step:?}"),
        EventKind::Suspended { .. }
        | EventKind::Attempt
        | EventKind::SessionOpened
        | EventKind::SessionClosed
        | EventKind::TurnCancelled => Ok(()),
    }
}

/// A name, as far as it is shown.
fn name(name: &str) -> impl Display {
    fmt::from_fn(move |f| plain(name, NAME_CHARS_MAX, f))
}

/// A text in quotes, as far as it is shown.
fn text(text: &str) -> impl Display {
    fmt::from_fn(move |f| {
        f.write_char('"')?;
        plain(text, TEXT_CHARS_MAX, f)?;
        f.write_char('"')
    })
}

fn plain(shown: &str, chars_max: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let mut chars = shown.chars();
    for char in chars.by_ref().take(chars_max) {
        if is_plain(char) { f.write_char(char)? } else { json_escape(char, f)? }
    }
    if chars.next().is_some() { f.write_char('…') } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use crate::{AgentPath, CallError, ErrorKind, Event, EventKind, SessionId, event::Failure};

    /// KT-5: whatever is in it, an event is one plain line of bounded length.
    #[test]
    fn an_event_is_one_plain_line() {
        let wild = "a\nb\u{202e}\u{1b}[2J".repeat(10_000);
        let error = CallError::new(ErrorKind::ExecutionError, wild.clone());
        for kind in [
            EventKind::Failed(Failure::new(wild.as_str().into(), &error, 1, 2)),
            EventKind::OutputDelta { text: wild.clone() },
            EventKind::AgentForked { child: wild.clone() },
        ] {
            let mut event = Event::new(SessionId::from(wild.as_str()), AgentPath::root(), kind);
            event.call_id = Some(wild.as_str().into());
            let line = event.to_string();
            assert!(line.chars().all(|char| crate::is_plain(char) || char == '…'), "{line}");
            assert!(line.chars().count() < 4_000, "{}", line.len());
            assert!(line.contains(event.kind.name()), "{line}");
        }
    }

    /// KT-5: a failure says why, a success how long it took.
    #[test]
    fn an_event_says_what_is_most_worth_knowing() {
        let error = CallError::new(ErrorKind::NotFound, "no such tool");
        let kind = EventKind::Failed(Failure::new("gone".into(), &error, 0, 0));
        let mut event = Event::new(SessionId::from("s"), AgentPath::root(), kind);
        event.call_id = Some("c".into());
        assert_eq!(event.to_string(), "0.000000 s call c tool.failed gone not_found \"no such tool\"");
        let kind = EventKind::TurnEnded { ok: 2, failed: 1 };
        let event = Event::new(SessionId::from("s"), AgentPath::root(), kind);
        assert_eq!(event.to_string(), "0.000000 s turn.ended 2 ok 1 failed");
    }
}
