//! A call that the gate let through.
//!
//! ```text
//!   Cleared ── tool, class, consent, policy, bytes
//!      └ Extra ── Nothing    most calls
//!                 Parsed     its arguments came as text
//!                 Digest     sinks or writers are told of it
//!                 More ────► two of these, a key, a confinement, a question: in memory of its own
//! ```

use super::{arguments::Args, capability_check::NamedPath, consent::Consent, edit::Edit};
use crate::{
    keys::KeyOf,
    tool::{PolicyVersion, ToolEntry},
};
use serde_json::Value;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, Ordering},
};
use toolyard_core::{Arguments, Call, Confinement, LazyDigest, ToolClass};

/// A call that may run, possibly on a flight `F`.
pub(crate) struct Cleared<F> {
    pub(crate) entry: Arc<ToolEntry>,
    extra: Extra<F>,
    /// The version of the policy that allowed it last.
    policy: AtomicU32,
    /// The size of its arguments as sent, which has been counted before; [`UNCOUNTED`] for large ones.
    bytes: u16,
    pub(crate) class: ToolClass,
    pub(crate) consent: Consent,
}

/// In place of a size that is too large to be kept.
const UNCOUNTED: u16 = u16::MAX;

/// What not all calls have. A slot has room for one pointer to it, and calls that have one thing of it need no other
/// memory: with a sink, that is every call.
enum Extra<F> {
    Nothing,
    /// The value of its arguments.
    Parsed(Arc<Value>),
    /// The digest of what runs, see [`More::digest`].
    Digest(LazyDigest),
    More(Box<More<F>>),
}

/// All that not all calls have.
pub(super) struct More<F> {
    /// The value of its arguments, if they came as text.
    pub(super) args: Args,
    /// Its idempotency key, if it has one.
    pub(super) key: Option<KeyOf<F>>,
    /// Where it executes and within which limits, unless that is the host without limits.
    pub(super) confinement: Option<Box<Confinement>>,
    /// The digest of what runs under the policy that it was asked of, if an approval or an event sink needs it.
    pub(super) digest: Option<LazyDigest>,
    /// What is known of it if it is asked about, or would be without an earlier answer.
    pub(super) asked: Option<Box<Asked>>,
}

/// What a question is about.
pub(super) struct Asked {
    /// The paths it names, and where they led when it was decided whether it is asked about; only if it is, or an
    /// earlier answer covers it.
    paths: Vec<NamedPath>,
    /// What the person who approved it changed.
    edit: OnceLock<Box<Edit>>,
}

static HOST: Confinement = Confinement::host();

impl Asked {
    /// What a question about a call with these paths is about.
    pub(super) fn about(paths: Vec<NamedPath>) -> Self {
        Self { paths, edit: OnceLock::new() }
    }
}

impl<F> Extra<F> {
    #[inline(always)]
    fn of(more: More<F>) -> Self {
        match more {
            More { args: Args { parsed }, key: None, confinement: None, digest: None, asked: None } => {
                parsed.map_or(Self::Nothing, Self::Parsed)
            }
            More {
                args: Args { parsed: None },
                key: None,
                confinement: None,
                digest: Some(digest),
                asked: None,
            } => Self::Digest(digest),
            more => Self::More(Box::new(more)),
        }
    }

    #[inline(always)]
    fn more(&self) -> Option<&More<F>> {
        if let Self::More(more) = self { Some(more) } else { None }
    }
}

impl<F> Cleared<F> {
    /// A call of this class with arguments of this size, which this policy allows.
    #[inline(always)]
    pub(super) fn new(
        entry: &Arc<ToolEntry>,
        (class, consent): (ToolClass, Consent),
        policy: PolicyVersion,
        bytes: usize,
        more: More<F>,
    ) -> Self {
        let bytes = u16::try_from(bytes).unwrap_or(UNCOUNTED);
        Self { entry: entry.clone(), extra: Extra::of(more), policy: policy.into(), bytes, class, consent }
    }

    /// Where the call executes and within which limits, as granted at the gate. Later changes are in
    /// [`InFlight::confinement`](crate::call::InFlight::confinement), which is the one to use.
    pub(crate) fn confinement_at_gate(&self) -> &Confinement {
        self.extra.more().and_then(|more| more.confinement.as_deref()).unwrap_or(&HOST)
    }

    /// Whether the call certainly executes on the host, as granted at the gate.
    #[inline(always)]
    pub(crate) fn is_cleared_for_host(&self) -> bool {
        self.extra.more().is_none_or(|more| more.confinement.is_none())
    }

    /// The call's idempotency key.
    pub(crate) fn key(&self) -> Option<&KeyOf<F>> {
        self.extra.more()?.key.as_ref()
    }

    /// The size of the call's arguments as sent, if that is kept.
    pub(crate) fn bytes(&self) -> Option<usize> {
        (self.bytes != UNCOUNTED).then_some(self.bytes.into())
    }

    /// The digest of what was to run when the call passed the gate; only if one was made.
    pub(crate) fn digest_at_gate(&self) -> Option<&LazyDigest> {
        match &self.extra {
            Extra::Digest(digest) => Some(digest),
            extra => extra.more()?.digest.as_ref(),
        }
    }

    /// The arguments that run; `call` must be the call that passed the gate.
    #[inline(always)]
    pub(crate) fn args<'a>(&'a self, call: &'a Call) -> &'a Arc<Value> {
        match (self.edit(), &call.arguments) {
            (Some(edit), _) => &edit.args,
            (None, Arguments::Json(value)) => value,
            (None, Arguments::Text(_)) => self.parsed().expect("text is parsed before a call is let through"),
        }
    }

    fn parsed(&self) -> Option<&Arc<Value>> {
        match &self.extra {
            Extra::Parsed(value) => Some(value),
            extra => extra.more()?.args.parsed.as_ref(),
        }
    }

    /// What the person who approved it changed, if anything.
    #[inline(always)]
    pub(crate) fn edit(&self) -> Option<&Edit> {
        self.asked()?.edit.get().map(Box::as_ref)
    }

    /// Makes this what runs.
    pub(crate) fn apply(&self, edit: Edit) {
        let asked = self.asked().expect("only a call that was asked about is changed");
        // A question is settled once.
        let _ = asked.edit.set(Box::new(edit));
    }

    /// The paths of a call that needs approval, and where they led when it was asked about or changed.
    pub(crate) fn paths(&self) -> &[NamedPath] {
        match (self.edit(), self.asked()) {
            (Some(edit), _) => &edit.paths,
            (None, Some(asked)) => &asked.paths,
            (None, None) => &[],
        }
    }

    #[inline(always)]
    fn asked(&self) -> Option<&Asked> {
        self.extra.more()?.asked.as_deref()
    }

    /// The version of the policy that allowed it last.
    pub(crate) fn policy(&self) -> PolicyVersion {
        self.policy.load(Ordering::Acquire)
    }

    /// Notes that this policy allows it.
    pub(crate) fn allowed_by(&self, policy: PolicyVersion) {
        self.policy.store(policy, Ordering::Release);
    }
}
