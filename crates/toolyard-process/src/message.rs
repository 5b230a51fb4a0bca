//! What a helper tells the program that started it: one line of JSON each.

use crate::{End, Limit, NotStarted, Ran, Report, Rest, Used};
use serde::{Deserialize, Serialize};
use std::io;

/// One message of a helper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// The program is about to be started: from here on it may have processes.
    Starting,
    /// It runs.
    Started,
    /// It could not be started.
    Refused(String),
    /// It could not be confined.
    NotConfined(String),
    /// It could not be confined for want of namespaces.
    NoNamespaces(String),
    /// It has ended by itself.
    Ended(End),
    /// What the processes that have ended used.
    Used(Used),
    /// A limit of all its processes was reached.
    Limit(Limit),
    /// All processes have ended except some.
    Done(Rest),
}

impl Message {
    /// The message as a line.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("a message has no map that could fail");
        line.push(b'\n');
        line
    }

    /// Parses a line.
    pub(crate) fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

impl From<io::Error> for Message {
    /// What there is to tell of an error before the program is started, unless it is about that.
    fn from(error: io::Error) -> Self {
        Self::NotConfined(error.to_string())
    }
}

/// What a helper has told so far.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    was_starting: bool,
    refused: Option<NotStarted>,
    end: Option<End>,
    used: Option<Used>,
    limit: Option<Limit>,
    rest: Option<Rest>,
}

impl Heard {
    pub(crate) fn add(&mut self, message: Message) {
        match message {
            Message::Starting => self.was_starting = true,
            Message::Started => {}
            Message::Refused(why) => self.refused = Some(NotStarted::Refused(why)),
            Message::NotConfined(why) => self.refused = Some(NotStarted::NotConfined(why)),
            Message::NoNamespaces(why) => self.refused = Some(NotStarted::NoNamespaces(why)),
            Message::Ended(end) => self.end = Some(end),
            Message::Used(used) => self.used = Some(used),
            Message::Limit(limit) => self.limit = Some(limit),
            Message::Done(rest) => self.rest = Some(rest),
        }
    }

    /// Whether the helper has said that its work is done, or that there is none.
    pub(crate) fn is_complete(&self) -> bool {
        self.rest.is_some() || self.refused.is_some()
    }

    pub(crate) fn report(self) -> Report {
        match self {
            Self { refused: Some(why), .. } => Report::NotStarted(why),
            Self { was_starting: false, limit: Some(limit), .. } => {
                let why = format!("its limit of {limit} leaves no room to start a program");
                Report::NotStarted(NotStarted::NotConfined(why))
            }
            Self { was_starting: false, .. } => Report::NotStarted(NotStarted::HelperEnded),
            Self { end, limit, rest, used, .. } => Report::Ran(Ran { end: judged(end, limit), rest, used }),
        }
    }
}

/// How a program ended of which a limit was reached. One that ended well did so in spite of it, one that exited with another
/// code was not ended by what ends all; and one that was stopped did not end for want of processes.
fn judged(end: Option<End>, limit: Option<Limit>) -> Option<End> {
    match (end, limit) {
        (None | Some(End::Killed(_)), Some(limit @ (Limit::Memory | Limit::CpuTime)))
        | (Some(End::Exited(1..) | End::Killed(_)), Some(limit @ Limit::Processes)) => {
            Some(End::Limit(limit))
        }
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn heard(messages: &[Message]) -> Report {
        let mut heard = Heard::default();
        messages.iter().cloned().for_each(|message| heard.add(message));
        heard.report()
    }

    #[test]
    fn every_message_reads_back() {
        let messages = [
            Message::Starting,
            Message::Started,
            Message::Ended(End::Exited(3)),
            Message::Ended(End::Killed(9)),
            Message::Used(Used { cpu: Duration::from_micros(1_500), memory_peak: 1 << 20 }),
            Message::Limit(Limit::CpuTime),
            Message::Done(Rest { left: 2, surviving: 1 }),
            Message::Refused("no such\nfile".to_owned()),
            Message::NoNamespaces("not permitted".to_owned()),
        ];
        for message in messages {
            let line = String::from_utf8(message.line()).unwrap();
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert_eq!(Message::read(line.trim_end()), Some(message));
        }
        assert_eq!(Message::read("nonsense"), None);
    }

    /// SM-3: a program has not started as long as its helper has not said that it is about to start it.
    #[test]
    fn a_report_says_no_more_than_was_heard() {
        assert_eq!(heard(&[]), Report::NotStarted(NotStarted::HelperEnded));
        assert_eq!(heard(&[Message::Starting]), Report::Ran(Ran::UNKNOWN));
        let refused = Message::Refused("x".to_owned());
        let refused = heard(&[Message::Starting, refused, Message::Done(Rest::NONE)]);
        assert_eq!(refused, Report::NotStarted(NotStarted::Refused("x".to_owned())));
        let end = End::Exited(1);
        let ran = heard(&[Message::Starting, Message::Started, Message::Ended(end)]);
        assert_eq!(ran, Report::Ran(Ran { end: Some(end), rest: None, used: None }));
    }

    /// SB-8: a limit is named where it ended the program, or where that failed for it.
    #[test]
    fn a_limit_that_was_reached_is_named() {
        let ran = |end: Option<End>, limit| {
            let messages = [Some(Message::Starting), end.map(Message::Ended), Some(Message::Limit(limit))];
            let Report::Ran(ran) = heard(&messages.map(|it| it.into_iter().collect::<Vec<_>>()).concat())
            else {
                panic!("it ran")
            };
            ran.end
        };
        for (end, limit, expect) in [
            (None, Limit::Memory, Some(End::Limit(Limit::Memory))),
            (Some(End::Killed(9)), Limit::CpuTime, Some(End::Limit(Limit::CpuTime))),
            (Some(End::Exited(1)), Limit::Memory, Some(End::Exited(1))),
            (Some(End::Exited(0)), Limit::Processes, Some(End::Exited(0))),
            (Some(End::Exited(2)), Limit::Processes, Some(End::Limit(Limit::Processes))),
            (None, Limit::Processes, None),
        ] {
            assert_eq!(ran(end, limit), expect, "{end:?} {limit}");
        }
        let none = Report::NotStarted(NotStarted::NotConfined(
            "its limit of memory leaves no room to start a program".to_owned(),
        ));
        assert_eq!(heard(&[Message::Limit(Limit::Memory)]), none);
    }
}
