//! The operator's view of rates and budgets (RT-10, RT-11). It is read when somebody asks; calls pay nothing for it.

use crate::{
    budget::{Allowance, BudgetOwner},
    call::EngineCore,
};
use serde::{Serialize, Serializer};
use std::{cmp::Reverse, sync::Arc, time::Duration};
use toolyard_core::{Rate, SessionId};

/// How many budgets a status lists.
const BUDGETS_LISTED_MAX: usize = 100;

/// The rate of a tool, and the calls that wait for it (RT-10, RT-3).
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Engine, ToolContext, ToolSettings, ToolSpec, tool_fn};
/// let ping = tool_fn(ToolSpec::pure("ping"), |(): (), _: ToolContext| async { Ok("pong") });
/// let settings = ToolSettings { rate: Some("5/s".parse().unwrap()), ..ToolSettings::default() };
/// let engine = Engine::builder().tool(ping).tool_config("ping", settings).build().await.unwrap();
/// let status = engine.status().await.unwrap();
/// assert_eq!((&*status.rates[0].tool, status.rates[0].waiting), ("ping", 0));
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RateStatus {
    /// The name of the tool.
    pub tool: Arc<str>,
    /// How often its attempts may start; `None` if only a pause holds them.
    pub rate: Option<Rate>,
    /// How many calls wait for a token or for the end of a pause.
    pub waiting: usize,
    /// For how long no attempt starts, because a server asked for that.
    #[serde(rename = "paused_ms", serialize_with = "millis")]
    pub paused: Option<Duration>,
}

/// What is used of a budget of an open session (RT-11). Calls that wait to start have reserved theirs and count as
/// used.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Budget, Budgets, Engine, status::BudgetOf};
/// let budgets = Budgets::default().tree(Budget::calls(10));
/// let engine = Engine::builder().budgets(budgets).build().await.unwrap();
/// let session = engine.session("demo");
/// let status = engine.status().await.unwrap();
/// assert_eq!(status.budgets[0].of, BudgetOf::Tree);
/// assert_eq!(status.budgets[0].calls.map(|calls| (calls.used, calls.limit)), Some((0, 10)));
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BudgetStatus {
    /// The session.
    pub session: SessionId,
    /// Which of its budgets.
    pub of: BudgetOf,
    /// The calls; `None` if they are unlimited.
    pub calls: Option<Quota>,
    /// The units of cost; `None` if they are unlimited.
    pub cost: Option<Quota>,
}

/// Which budget of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BudgetOf {
    /// That of the session's root agent, on which its forks draw too.
    Session,
    /// That of the session and all its forks together.
    Tree,
    /// That of this tool's calls in the session and all its forks.
    Tool(Arc<str>),
}

/// How much of a limit is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Quota {
    /// How much is used; never more than the limit.
    pub used: u64,
    /// The limit.
    pub limit: u64,
}

impl Quota {
    fn of((limit, left): (u64, u64)) -> Self {
        Self { used: limit - left, limit }
    }

    /// The used part, in millionths.
    fn part(self) -> u128 {
        let limit = u128::from(self.limit);
        (u128::from(self.used) * 1_000_000).checked_div(limit).unwrap_or(1_000_000)
    }
}

impl BudgetStatus {
    fn of(session: &SessionId, of: BudgetOf, allowance: &Allowance) -> Self {
        let (limit, left) = (allowance.limit(), allowance.left());
        Self {
            session: session.clone(),
            of,
            calls: limit.calls.zip(left.calls).map(Quota::of),
            cost: limit.cost.zip(left.cost).map(Quota::of),
        }
    }

    fn part(&self) -> u128 {
        self.calls.into_iter().chain(self.cost).map(Quota::part).max().unwrap_or(0)
    }
}

/// The tools that have a rate, or whose calls wait, by name.
pub(super) fn rates(engine: &EngineCore) -> Vec<RateStatus> {
    let now = engine.clock.now();
    let status = |entry: Arc<crate::tool::ToolEntry>| {
        let guard = entry.guard();
        let (waiting, paused) = guard.queue.standing(now);
        let is_told = guard.rate().is_some() || waiting > 0 || paused.is_some();
        is_told.then(|| RateStatus { tool: entry.shared_name(), rate: guard.rate(), waiting, paused })
    };
    engine.registry.list().into_iter().filter_map(status).collect()
}

/// The budgets of the open sessions, those first of which the largest part is used.
pub(super) fn budgets(engine: &EngineCore) -> Vec<BudgetStatus> {
    let mut all = Vec::new();
    for session in engine.open_sessions() {
        let own = session.allowances().filter_map(|allowance| {
            let of = match allowance.owner() {
                BudgetOwner::Session => BudgetOf::Session,
                BudgetOwner::Tree => BudgetOf::Tree,
                BudgetOwner::Turn | BudgetOwner::Tool => return None,
            };
            Some(BudgetStatus::of(&session.id, of, allowance))
        });
        all.extend(own);
        let tools = session.tool_allowances().into_iter();
        all.extend(tools.map(|(name, one)| BudgetStatus::of(&session.id, BudgetOf::Tool(name), &one)));
    }
    all.sort_by_key(|budget| Reverse(budget.part()));
    all.truncate(BUDGETS_LISTED_MAX);
    all
}

fn millis<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).serialize(to)
}
