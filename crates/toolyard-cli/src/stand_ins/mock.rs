//! A mock: it answers the calls of a tool without doing anything (KT-10).

use super::{
    dice::Dice,
    latency::Latency,
    template::{DataTemplate, Template},
};
use serde_json::Value;
use std::time::Duration;
use toolyard::{ToolError, ToolErrorKind, ToolOutput, ToolSpec};

/// What answers the calls of one tool.
#[derive(Debug, Clone)]
pub(crate) struct Mock {
    /// The tool's name.
    pub(crate) name: String,
    /// How long a call takes.
    pub(crate) latency: Latency,
    /// The share of calls that fail, from 0 to 1.
    pub(crate) failure_rate: f64,
    /// How they fail.
    pub(crate) failure: ToolErrorKind,
    /// What the others are answered.
    pub(crate) answer: Answer,
    /// The tool, if no other one has its name.
    pub(crate) declared: ToolSpec,
}

/// What a mock answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// A text.
    Text(Template),
    /// Data.
    Data(DataTemplate),
}

impl Answer {
    /// The arguments that it names.
    pub(crate) fn arguments(&self) -> Vec<&str> {
        match self {
            Self::Text(text) => text.arguments().collect(),
            Self::Data(data) => data.arguments(),
        }
    }
}

impl Mock {
    /// How long an attempt with these lots takes, and its result.
    pub(super) fn answer(&self, dice: &Dice, arguments: &Value) -> (Duration, Result<ToolOutput, ToolError>) {
        let result = if dice.failure < self.failure_rate {
            Err(ToolError::new(self.failure, "the mock of this tool failed, as it is set to")
                .no_side_effect())
        } else {
            Ok(match &self.answer {
                Answer::Text(text) => ToolOutput::text(text.fill(arguments)),
                Answer::Data(data) => ToolOutput::json(data.fill(arguments)),
            })
        };
        (self.latency.of(dice), result)
    }
}
