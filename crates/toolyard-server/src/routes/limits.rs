//! What the body of a request may ask for of what a session may do (HT-7).

use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, num::NonZeroUsize, time::Duration};
use toolyard::{
    Budget, Budgets, Capabilities, ConfirmationMode, Confirmations, FsGrant, FsMode, HostPattern,
    SessionCeiling, SessionOptions, SideEffects,
};
use utoipa::ToSchema;

/// What a session or an agent may touch. A list that is missing bounds nothing beyond what its token may; an empty one
/// allows nothing.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CapabilityNames {
    /// The tools that may be called.
    tools: Option<Vec<String>>,
    /// Paths with their modes, such as `r:docs` and `rw:out`.
    fs: Option<Vec<String>>,
    /// Hosts, such as `api.example.com` and `*.example.com:443`.
    net: Option<Vec<String>>,
}

impl CapabilityNames {
    pub(super) fn read(self) -> Result<Capabilities, Problem> {
        let mut capabilities = Capabilities::default();
        if let Some(tools) = self.tools {
            capabilities = capabilities.tools(tools);
        }
        if let Some(grants) = self.fs {
            capabilities = capabilities.fs(each("fs", &grants, fs_grant)?);
        }
        if let Some(hosts) = self.net {
            let host = |text: &str| text.parse::<HostPattern>().map_err(|error| error.to_string());
            capabilities = capabilities.net(each("net", &hosts, host)?);
        }
        Ok(capabilities)
    }
}

fn each<T>(
    list: &str,
    texts: &[String],
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Problem> {
    let read = |(at, text): (usize, &String)| {
        read(text).map_err(|what| Problem::invalid(&format!("/capabilities/{list}/{at}"), what))
    };
    texts.iter().enumerate().map(read).collect()
}

fn fs_grant(text: &str) -> Result<FsGrant, String> {
    let form = || "a grant is a mode and a path, such as 'r:docs' or 'rw:out'".to_owned();
    let (mode, path) = text.split_once(':').ok_or_else(form)?;
    let mode = match mode {
        "r" => FsMode::Read,
        "w" => FsMode::Write,
        "rw" => FsMode::ReadWrite,
        _ => return Err(form()),
    };
    FsGrant::new(mode, path).map_err(|error| error.to_string())
}

/// What happens to a call before it may run.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    Auto,
    Prompt,
    PromptOnce,
    Deny,
}

impl From<Mode> for ConfirmationMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Auto => Self::Auto,
            Mode::Prompt => Self::Prompt,
            Mode::PromptOnce => Self::PromptOnce,
            Mode::Deny => Self::Deny,
        }
    }
}

/// Which calls need approval, beside what the server says: the stricter counts.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Asking {
    /// By the worst that a tool can do.
    #[serde(default)]
    side_effects: BySideEffects,
    /// By tool.
    #[serde(default)]
    tools: BTreeMap<String, Mode>,
    /// How long an answer is waited for.
    #[schema(minimum = 1)]
    timeout_ms: Option<u64>,
}

/// A mode for each of these side effects.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BySideEffects {
    none: Option<Mode>,
    read: Option<Mode>,
    write: Option<Mode>,
    execute: Option<Mode>,
    network: Option<Mode>,
}

impl Asking {
    pub(super) fn read(self) -> Confirmations {
        // What it says nothing about it leaves to the others.
        let mut confirmations = Confirmations::auto();
        let BySideEffects { none, read, write, execute, network } = self.side_effects;
        let modes = [
            (SideEffects::None, none),
            (SideEffects::Read, read),
            (SideEffects::Write, write),
            (SideEffects::Execute, execute),
            (SideEffects::Network, network),
        ];
        for (side_effects, mode) in modes {
            if let Some(mode) = mode {
                confirmations = confirmations.side_effects(side_effects, mode.into());
            }
        }
        for (tool, mode) in self.tools {
            confirmations = confirmations.tool(tool, mode.into());
        }
        match self.timeout_ms {
            Some(within) => confirmations.timeout(Duration::from_millis(within)),
            None => confirmations.timeout(Duration::MAX),
        }
    }
}

/// What a session may spend and run at once, within what its token may: the smaller counts.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitNumbers {
    /// Calls at once, over all classes.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_in_flight: Option<NonZeroUsize>,
    /// Calls at once in the session and all of its agents together.
    #[schema(value_type = Option<u64>, minimum = 1)]
    tree_max_in_flight: Option<NonZeroUsize>,
    /// Calls of each turn.
    turn_calls: Option<u64>,
    /// Calls of each agent.
    session_calls: Option<u64>,
    /// Calls of the session and all of its agents.
    tree_calls: Option<u64>,
}

impl LimitNumbers {
    pub(super) fn apply(self, options: SessionOptions, token: Budgets) -> SessionOptions {
        let calls = |most: Option<u64>| most.map_or_else(Budget::default, Budget::calls);
        let asked = Budgets::default()
            .turn(calls(self.turn_calls))
            .session(calls(self.session_calls))
            .tree(calls(self.tree_calls));
        options.at_most(SessionCeiling {
            max_in_flight: self.max_in_flight,
            tree_max_in_flight: self.tree_max_in_flight,
            budgets: token.min(asked),
        })
    }
}
