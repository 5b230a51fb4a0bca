//! What the first life of a child is to do. A seed decides it, so that whoever reads what the child has done knows what it
//! was told to do.

use crate::random::Random;
use serde_json::{Value, json};
use toolyard::{Call, ConfirmationMode, Confirmations, ToolSpec};
use toolyard_journal::Durability;

pub(crate) struct Plan {
    pub(crate) durability: Durability,
    /// Whether one thread runs everything.
    pub(crate) one_thread: bool,
    /// Whether it starts a program that goes on when it has ended.
    pub(crate) has_helper: bool,
    pub(crate) sessions: Vec<SessionPlan>,
}

pub(crate) struct SessionPlan {
    pub(crate) name: String,
    /// What its agents do, side by side: the first is the root, the others are named.
    pub(crate) agents: Vec<Vec<TurnPlan>>,
}

pub(crate) struct TurnPlan {
    pub(crate) batches: Vec<BatchPlan>,
    pub(crate) cancel: Option<CancelPlan>,
}

/// What is cancelled, so many pauses after the turn begins.
pub(crate) struct CancelPlan {
    pub(crate) after: u64,
    pub(crate) what: Cancel,
}

pub(crate) enum Cancel {
    Call(String),
    Turn,
    Session,
}

pub(crate) struct BatchPlan {
    pub(crate) is_open: bool,
    pub(crate) calls: Vec<CallPlan>,
}

#[derive(Clone)]
pub(crate) struct CallPlan {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) key: Option<String>,
    /// Whether it fails, without an effect.
    pub(crate) fails: bool,
    /// What whoever is asked about it says.
    pub(crate) says: Says,
    /// The life from which on that is said soon: in those before it takes so long that most of them end first.
    pub(crate) late: u64,
    /// How many first attempts fail, without an effect, and are repeated.
    pub(crate) harmless: u64,
    /// The pauses before and behind its effect.
    pub(crate) pauses: (u64, u64),
}

/// What a person says to the question about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    Allow,
    Deny,
    /// It may run, with a note among its arguments.
    Edit,
}

impl Says {
    const ALL: [Self; 3] = [Self::Allow, Self::Deny, Self::Edit];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Edit => "edit",
        }
    }

    /// What the arguments of a call ask for.
    pub(crate) fn of(arguments: &Value) -> Self {
        let found = Self::ALL.into_iter().find(|says| arguments["says"] == says.name());
        found.expect("the arguments of every planned call say it")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reads.
    Look,
    /// Changes something, alone.
    Serial,
    /// Changes something, beside others.
    Save,
    /// Changes something, and may do so again.
    Again,
    /// Changes something, if whoever is asked says yes.
    Ask,
    /// Changes something, and dispatches calls.
    Nest,
    /// Changes something, and can find out whether it has.
    Checked,
    /// Changes something, if whoever is asked says yes, and can find out whether it has.
    AskChecked,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Look,
        Self::Serial,
        Self::Save,
        Self::Again,
        Self::Ask,
        Self::Nest,
        Self::Checked,
        Self::AskChecked,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Serial => "serial",
            Self::Save => "save",
            Self::Again => "again",
            Self::Ask => "ask",
            Self::Nest => "nest",
            Self::Checked => "checked",
            Self::AskChecked => "ask_checked",
        }
    }

    pub(crate) fn of(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.unwrap_or_else(|| panic!("no tool is called {name}"))
    }

    pub(crate) fn spec(self) -> ToolSpec {
        match self {
            Self::Look => ToolSpec::read(self.name()),
            Self::Serial => ToolSpec::write(self.name()),
            Self::Again => ToolSpec::network(self.name()).concurrent().idempotent(),
            Self::Nest => ToolSpec::write(self.name()).concurrent().recursive(),
            Self::Save | Self::Checked => ToolSpec::write(self.name()).concurrent(),
            // All of its calls in a session have one pattern, and nobody ever answers for more than one call.
            Self::Ask | Self::AskChecked => {
                let spec = ToolSpec::write(self.name()).concurrent();
                ARGUMENTS.into_iter().fold(spec, ToolSpec::approval_ignores)
            }
        }
    }

    /// Whether somebody is asked.
    pub(crate) fn asks(self) -> bool {
        matches!(self, Self::Ask | Self::AskChecked)
    }

    /// Whether it can tell after a crash what became of a call, which may be started again then.
    pub(crate) fn is_checked(self) -> bool {
        matches!(self, Self::Checked | Self::AskChecked)
    }

    /// Whether its handler may be started again after a crash.
    pub(crate) fn is_repeatable(self) -> bool {
        matches!(self, Self::Look | Self::Again)
    }
}

/// The arguments that calls are sent with.
const ARGUMENTS: [&str; 6] = ["fails", "says", "late", "harmless", "before", "after"];

pub(crate) fn confirmations() -> Confirmations {
    let asking = Kind::ALL.into_iter().filter(|kind| kind.asks());
    asking.fold(Confirmations::auto(), |all, kind| all.tool(kind.name(), ConfirmationMode::Prompt))
}

impl CallPlan {
    fn random(random: &mut Random, id: String) -> Self {
        let kind = Kind::ALL[random.below(Kind::ALL.len() as u64) as usize];
        let key = random.chance(35).then(|| format!("key-{id}"));
        let harmless = if random.chance(30) { 1 } else { 0 };
        let pauses = (random.below(3), random.below(3));
        let fails = random.chance(12);
        let says = match random.below(100) {
            0..20 => Says::Deny,
            20..45 => Says::Edit,
            _ => Says::Allow,
        };
        let late = if random.chance(30) { 1 + random.below(2) } else { 0 };
        Self { kind, key, fails, says, late, harmless, pauses, id }
    }

    pub(crate) fn arguments(&self) -> Value {
        let Self { fails, says, late, harmless, pauses: (before, after), .. } = self;
        json!({
            "fails": fails, "says": says.name(), "late": late, "harmless": harmless,
            "before": before, "after": after,
        })
    }

    pub(crate) fn call(&self) -> Call {
        let mut call = Call::new(self.id.as_str(), self.kind.name(), self.arguments());
        call.idempotency_key = self.key.as_deref().map(Into::into);
        call
    }

    /// The same call, sent once more under its key with an id of its own.
    pub(crate) fn sent_again(&self, life: usize) -> Call {
        let mut call = self.call();
        call.id = format!("{}+{life}", self.id).into();
        call
    }
}

/// The id of the call that another one repeats, or has come from: of `a+2` and `a/1` it is `a`.
pub(crate) fn origin(id: &str) -> &str {
    id.split(['+', '/']).next().unwrap_or(id)
}

impl TurnPlan {
    fn random(random: &mut Random, at: &str) -> Self {
        let batches: Vec<_> = (0..=random.below(2))
            .map(|batch| {
                let calls = 1 + random.below(5);
                let calls = (0..calls).map(|call| CallPlan::random(random, format!("{at}.{batch}.{call}")));
                let calls = calls.collect();
                BatchPlan { is_open: random.chance(30), calls }
            })
            .collect();
        let cancel = random.chance(35).then(|| {
            let ids: Vec<_> = batches.iter().flat_map(|batch| &batch.calls).map(|call| &call.id).collect();
            let what = match random.below(10) {
                0 => Cancel::Session,
                1..4 => Cancel::Turn,
                _ => Cancel::Call(ids[random.below(ids.len() as u64) as usize].clone()),
            };
            CancelPlan { after: random.below(5), what }
        });
        Self { batches, cancel }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &CallPlan> {
        self.batches.iter().flat_map(|batch| &batch.calls)
    }
}

impl SessionPlan {
    fn random(random: &mut Random, number: usize) -> Self {
        // Two of them have sub-agents.
        let agents = if number < 2 { 1 + number } else { 1 };
        let agents = (0..agents).map(|agent| {
            let turns = 2 + random.below(2);
            (0..turns).map(|turn| TurnPlan::random(random, &format!("{number}.{agent}.{turn}"))).collect()
        });
        Self { name: format!("session-{number}"), agents: agents.collect() }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &CallPlan> {
        self.agents.iter().flatten().flat_map(TurnPlan::calls)
    }
}

impl Plan {
    pub(crate) fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let one_thread = random.chance(50);
        // A sync takes as long as the rest of a life: what survives a kill is the same.
        let durability = if random.chance(10) { Durability::Full } else { Durability::Process };
        let sessions = (0..3).map(|number| SessionPlan::random(&mut random, number)).collect();
        Self { durability, one_thread, sessions, has_helper: random.chance(15) }
    }

    /// One call of each kind, in two turns, and one that is allowed with a change and late, and one that is denied.
    pub(crate) fn small() -> Self {
        let call = |at: usize, kind: Kind| CallPlan {
            id: format!("0.0.0.0.{at}"),
            key: (at % 2 == 1).then(|| format!("key-{at}")),
            harmless: u64::from(kind == Kind::Again),
            fails: false,
            says: Says::Allow,
            late: 0,
            pauses: (0, 0),
            kind,
        };
        let mut all: Vec<_> = Kind::ALL.into_iter().enumerate().map(|(at, kind)| call(at, kind)).collect();
        all.push(CallPlan { says: Says::Edit, late: 1, ..call(8, Kind::Ask) });
        all.push(CallPlan { says: Says::Deny, late: 0, ..call(9, Kind::Ask) });
        let pushed = vec![call(10, Kind::Save), call(11, Kind::Serial), call(12, Kind::Checked)];
        let cancel = CancelPlan { after: 0, what: Cancel::Call(pushed[2].id.clone()) };
        let first = TurnPlan { batches: vec![BatchPlan { is_open: false, calls: all }], cancel: None };
        let batches = vec![BatchPlan { is_open: true, calls: pushed }];
        let second = TurnPlan { batches, cancel: Some(cancel) };
        let session = SessionPlan { name: "session-0".into(), agents: vec![vec![first, second]] };
        Self { durability: Durability::Process, one_thread: true, has_helper: false, sessions: vec![session] }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &CallPlan> {
        self.sessions.iter().flat_map(SessionPlan::calls)
    }
}

/// The name of a session's sub-agent.
pub(crate) fn agent_name(agent: usize) -> &'static str {
    ["root", "ada", "bob"][agent]
}
