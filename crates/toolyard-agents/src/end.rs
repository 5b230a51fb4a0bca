//! How agents end (AG-8).

use crate::{models::ModelUse, observe::AgentCounts};
use serde_json::Value;
use std::{fmt, time::Duration};
use toolyard::AgentPath;
use toolyard_process::{End, Limit, Report};

/// How an agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentEnd {
    /// It exited with code 0.
    Ended,
    /// It exited with this code.
    Failed(i32),
    /// This signal ended it.
    Killed(i32),
    /// It ran into this limit: `memory`, `processes`, `wall time`, `line`.
    Limit {
        /// Which.
        which: &'static str,
        /// What happened, if the limit alone does not say it.
        why: Option<String>,
    },
    /// It sent nothing that is understood for too long, for this reason.
    Protocol(String),
    /// It was told to stop, and did not end by itself.
    Stopped,
    /// It could not be started, for this reason.
    NotStarted(String),
}

impl AgentEnd {
    /// Whether it ended well.
    pub fn is_ok(&self) -> bool {
        *self == Self::Ended
    }

    /// More of it than its word says.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Limit { why, .. } => why.as_deref(),
            Self::Protocol(why) | Self::NotStarted(why) => Some(why),
            Self::Ended | Self::Failed(_) | Self::Killed(_) | Self::Stopped => None,
        }
    }
}

impl fmt::Display for AgentEnd {
    /// One word: `ended`, `failed(1)`, `killed(9)`, `limit(memory)`, `protocol`, `stopped`, `not_started`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("ended"),
            Self::Failed(code) => write!(f, "failed({code})"),
            Self::Killed(signal) => write!(f, "killed({signal})"),
            Self::Limit { which, .. } => write!(f, "limit({which})"),
            Self::Protocol(_) => f.write_str("protocol"),
            Self::Stopped => f.write_str("stopped"),
            Self::NotStarted(_) => f.write_str("not_started"),
        }
    }
}

/// Why the supervisor has ended an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    Line(String),
    Protocol(String),
    WallTime(Duration),
    Stopped,
}

/// How an agent ended that was ended for this cause, if for any, and whose program did so.
pub(crate) fn judge(cause: Option<Cause>, report: &Report) -> AgentEnd {
    let end = match report {
        Report::NotStarted(why) => return AgentEnd::NotStarted(why.to_string()),
        Report::Ran(ran) => ran.end,
    };
    match (cause, end) {
        (Some(Cause::Line(why)), _) => AgentEnd::Limit { which: "line", why: Some(why) },
        (Some(Cause::Protocol(why)), _) => AgentEnd::Protocol(why),
        (_, Some(End::Exited(0))) => AgentEnd::Ended,
        (Some(Cause::WallTime(limit)), _) => {
            AgentEnd::Limit { which: "wall time", why: Some(format!("it ran for {} s", limit.as_secs_f64())) }
        }
        (Some(Cause::Stopped), _) => AgentEnd::Stopped,
        (None, Some(End::Exited(code))) => AgentEnd::Failed(code),
        (None, Some(End::Killed(signal))) => AgentEnd::Killed(signal),
        (None, Some(End::Limit(limit))) => AgentEnd::Limit { which: limit_name(limit), why: None },
        // It was told to end because it did not exit after it had nothing more to ask.
        (None, None) => AgentEnd::Stopped,
    }
}

const fn limit_name(limit: Limit) -> &'static str {
    limit.as_str()
}

/// What became of an agent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentReport {
    /// Who it was.
    pub agent: AgentPath,
    /// Its profile.
    pub profile: String,
    /// Its process: its helper, with whose end all that it started ends, or its program.
    pub pid: Option<u32>,
    /// How it ended.
    pub end: AgentEnd,
    /// What it gave with its `bye`.
    pub result: Option<Value>,
    /// What it did.
    pub counts: AgentCounts,
    /// What it has asked of each of its models.
    pub models: Vec<ModelUse>,
    /// How long it lived.
    pub lived: Duration,
    /// Processor time of all its processes, and the most memory of the largest one in bytes, where that is known.
    pub used: Option<toolyard_process::Used>,
}

impl AgentReport {
    /// How many requests its models have answered.
    pub fn model_requests(&self) -> u64 {
        self.models.iter().map(|model| model.requests).sum()
    }

    /// Of an agent whose actor has failed.
    pub(crate) fn lost(agent: AgentPath) -> Self {
        Self {
            agent,
            profile: String::new(),
            pid: None,
            end: AgentEnd::Stopped,
            result: None,
            counts: AgentCounts::default(),
            models: Vec::new(),
            lived: Duration::ZERO,
            used: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard_process::{NotStarted, Ran};

    /// AG-8: how an agent ended is told in one word.
    #[test]
    fn each_end_has_a_word() {
        let ran = |end| Report::Ran(Ran { end, rest: None, used: None });
        let word = |cause, end| judge(cause, &ran(end)).to_string();
        assert_eq!(word(None, Some(End::Exited(0))), "ended");
        assert_eq!(word(None, Some(End::Exited(3))), "failed(3)");
        assert_eq!(word(None, Some(End::Killed(9))), "killed(9)");
        assert_eq!(word(None, Some(End::Limit(Limit::Memory))), "limit(memory)");
        assert_eq!(word(None, None), "stopped");
        assert_eq!(word(Some(Cause::Stopped), Some(End::Exited(0))), "ended");
        assert_eq!(word(Some(Cause::Stopped), Some(End::Killed(15))), "stopped");
        assert_eq!(word(Some(Cause::WallTime(Duration::from_secs(1))), None), "limit(wall time)");
        assert_eq!(word(Some(Cause::Line(String::new())), Some(End::Exited(0))), "limit(line)");
        assert_eq!(word(Some(Cause::Protocol(String::new())), None), "protocol");
        let not_started = judge(None, &Report::NotStarted(NotStarted::HelperEnded));
        assert_eq!(not_started.to_string(), "not_started");
        assert!(not_started.why().is_some() && !not_started.is_ok());
    }
}
