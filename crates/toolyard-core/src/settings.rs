//! What a tool's author chooses and an operator may choose otherwise.

use crate::{BreakerPolicy, Budget, PolicyError, Rate, RateError, RetryPolicy};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, num::NonZeroUsize, sync::Arc, time::Duration};

/// The scope over which a tool's own limit counts (CL-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitScope {
    /// One agent: a session, or one fork of it. The default.
    #[default]
    Agent,
    /// A session and all its forks.
    Tree,
    /// The whole engine.
    Engine,
}

/// What happens to a call whose idempotency key is that of a call in flight (ID-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyConflict {
    /// The call shares the result. The default.
    #[default]
    Join,
    /// The call ends as `key_in_progress`.
    Fail,
}

/// Where the idempotency key of a call comes from (ID-1, KT-16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// From the caller; a call without one has none. The default.
    #[default]
    Caller,
    /// From the caller; a call without one has the key that [`IdempotencyKey::derive`](crate::IdempotencyKey::derive)
    /// makes of the tool and the arguments, so that equal calls of a session tree run once.
    ///
    /// For tools that change something which must not be changed twice, such as a payment or a message, and for which
    /// an equal call never means something new. A tool that only reads cannot have it: later calls would read what was
    /// true before.
    Derive,
}

/// The agents from which a tool is hidden: for them it is `not_found` (PO-1b).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HiddenFrom {
    /// Every sub-agent.
    #[serde(default)]
    pub sub_agents: bool,
    /// Agents in one of these roles.
    #[serde(default)]
    pub roles: BTreeSet<Arc<str>>,
}

/// A setting that is refused when its tool is registered, or its engine is built (KT-4).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// A number is zero.
    #[error("{0} must not be zero")]
    Zero(&'static str),
    /// Derived keys of a tool that only reads.
    #[error(
        "key = derive is for tools that change something: equal calls of one that only reads would be answered with \
         what was read before"
    )]
    KeyOfReader,
    /// Of the retry policy.
    #[error("retry: {0}")]
    Retry(PolicyError),
    /// Of the breaker.
    #[error("breaker: {0}")]
    Breaker(PolicyError),
    /// The rate.
    #[error("rate: {0}")]
    Rate(#[from] RateError),
}

/// A value of a setting, or the failed attempt to make one, which is then refused together with all other settings when
/// the tool is registered (KT-4): `.rate(Rate::per_second(5))` and `.rate("5/s")` need neither
/// `?` nor `unwrap`.
pub trait IntoSetting<T> {
    /// The value.
    ///
    /// # Errors
    /// What was wrong with it.
    fn into_setting(self) -> Result<T, SettingError>;
}

impl<T> IntoSetting<T> for T {
    fn into_setting(self) -> Result<T, SettingError> {
        Ok(self)
    }
}

impl IntoSetting<Rate> for &str {
    fn into_setting(self) -> Result<Rate, SettingError> {
        Ok(self.parse::<Rate>()?)
    }
}

impl<T, E: Into<SettingError>> IntoSetting<T> for Result<T, E> {
    fn into_setting(self) -> Result<T, SettingError> {
        self.map_err(Into::into)
    }
}

/// What a tool's author chooses, in its [`ToolSpec`](crate::ToolSpec), and an operator may choose otherwise. What
/// neither chooses has a default.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_core::{KeyConflict, ToolSettings, ToolSpec};
/// let author = ToolSpec::network("search").timeout(Duration::from_secs(5)).key_conflict(KeyConflict::Fail);
/// let operator = ToolSettings { timeout: Some(Duration::from_secs(60)), ..ToolSettings::default() };
/// let settings = author.settings.overlaid(operator);
/// assert_eq!(settings.timeout, Some(Duration::from_secs(60)));
/// assert_eq!(settings.key_conflict, Some(KeyConflict::Fail));
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolSettings {
    /// Whether a mutating tool is safe beside other calls, so that its calls use the concurrent pool (CL-1). By
    /// default it is not.
    pub concurrent: Option<bool>,
    /// The most calls of the tool at once, per agent unless [`limit_scope`](Self::limit_scope) says otherwise (CL-6).
    /// Unlimited by default.
    pub max_concurrency: Option<NonZeroUsize>,
    /// The scope over which `max_concurrency` counts. By default each agent has its own.
    pub limit_scope: Option<LimitScope>,
    /// The state that its serial calls share with those of other tools and sessions, such as a database. Of all calls
    /// with the same scope, the engine runs one at a time. The default is the scope of the session tree (CC-8).
    pub serial_scope: Option<Arc<str>>,
    /// Whether running the tool twice with the same arguments has the same effect as running it once. By default it
    /// has not.
    pub idempotent: Option<bool>,
    /// The attempt timeout. The default goes by the tool's side effects (V3).
    pub timeout: Option<Duration>,
    /// How long a handler that exceeded its timeout may continue, with its cancel token fired, before it is dropped.
    /// By default it is dropped at once (SC-5).
    pub timeout_grace: Option<Duration>,
    /// How often and when failures are retried. The default is the engine's policy (RT-1).
    pub retry: Option<RetryPolicy>,
    /// When the engine stops calling the tool for a while. The default is the engine's policy (CB-2).
    pub breaker: Option<BreakerPolicy>,
    /// The backend that the tool works through, such as a server. Besides their own breakers, tools with the same
    /// backend share one that counts transport failures (CB-9).
    pub backend: Option<Arc<str>>,
    /// How often its attempts may start. Unlimited by default (RT-10).
    pub rate: Option<Rate>,
    /// The cost of one call, in units that the embedder chooses, counted against budgets (RT-11). Nothing by default.
    pub cost: Option<u64>,
    /// How many calls of the tool one session tree may make, and at what cost (RT-11). Unlimited by default.
    pub budget: Option<Budget>,
    /// What happens to a call whose idempotency key is that of a call in flight (ID-3). By default it shares the
    /// result.
    pub key_conflict: Option<KeyConflict>,
    /// Where the idempotency keys of its calls come from (KT-16). By default from the caller alone.
    pub key: Option<KeySource>,
    /// The agents from which the tool is hidden; by default none (PO-1b).
    pub hidden_from: Option<HiddenFrom>,
    /// Whether an agent with a list of tools may call this one only if the list names it (PO-1b). True by default.
    pub requires_capability: Option<bool>,
    /// The arguments that do not matter for approval: an answer for all calls of a pattern covers any value of them
    /// (PO-3). By default every argument matters.
    pub approval_ignores: Option<Vec<String>>,
}

impl ToolSettings {
    /// Looks for a setting that makes no sense.
    ///
    /// # Errors
    /// The first one.
    pub fn check(&self) -> Result<(), SettingError> {
        self.retry.map_or(Ok(()), |retry| retry.checked().map(drop).map_err(SettingError::Retry))?;
        self.breaker.map_or(Ok(()), |breaker| breaker.checked().map(drop).map_err(SettingError::Breaker))
    }

    /// Merges both; where both choose, `over` wins.
    #[must_use]
    pub fn overlaid(self, over: Self) -> Self {
        Self {
            concurrent: over.concurrent.or(self.concurrent),
            max_concurrency: over.max_concurrency.or(self.max_concurrency),
            limit_scope: over.limit_scope.or(self.limit_scope),
            serial_scope: over.serial_scope.or(self.serial_scope),
            idempotent: over.idempotent.or(self.idempotent),
            timeout: over.timeout.or(self.timeout),
            timeout_grace: over.timeout_grace.or(self.timeout_grace),
            retry: over.retry.or(self.retry),
            breaker: over.breaker.or(self.breaker),
            backend: over.backend.or(self.backend),
            rate: over.rate.or(self.rate),
            cost: over.cost.or(self.cost),
            budget: over.budget.or(self.budget),
            key_conflict: over.key_conflict.or(self.key_conflict),
            key: over.key.or(self.key),
            hidden_from: over.hidden_from.or(self.hidden_from),
            requires_capability: over.requires_capability.or(self.requires_capability),
            approval_ignores: over.approval_ignores.or(self.approval_ignores),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolSpec;

    fn settings(text: &str) -> ToolSettings {
        serde_json::from_str(text).unwrap()
    }

    /// One setting of each kind: a flag that is taken back, a list that is emptied, one that only one side has.
    #[test]
    fn what_is_chosen_over_it_wins_and_the_rest_stays() {
        let author = settings(r#"{"idempotent": true, "approval_ignores": ["new"], "cost": 3}"#);
        let operator = settings(r#"{"idempotent": false, "approval_ignores": [], "max_concurrency": 2}"#);
        let both = r#"{"idempotent": false, "approval_ignores": [], "cost": 3, "max_concurrency": 2}"#;
        assert_eq!(author.clone().overlaid(operator), settings(both));
        assert_eq!(author.clone().overlaid(ToolSettings::default()), author);
        assert_eq!(ToolSettings::default().overlaid(author.clone()), author);
    }

    /// The settings of a tool are written among its other fields.
    #[test]
    fn a_spec_is_read_as_it_was_written() {
        let spec = ToolSpec::write("send")
            .timeout(Duration::from_millis(1500))
            .cost(u64::MAX)
            .rate("5/s burst 10")
            .serial_scope("mail")
            .without_capability()
            .hidden_from_role("reviewer");
        let written = serde_json::to_value(&spec).unwrap();
        assert_eq!(written["serial_scope"], "mail");
        assert_eq!(serde_json::from_value::<ToolSpec>(written).unwrap(), spec);
    }
}
