//! I14: no call that needs an approval starts without a yes to what runs; a remembered answer is used as long as it
//! is valid (PO-4).

use super::{
    Traces, Violation,
    in_force::{InForce, checked_us},
    policies::START_US,
    recording_us,
    remembered::{Pattern, RememberedAnswer, RememberedAnswers},
    traces::{AttemptTrace, CallTrace},
};
use crate::sim::{
    Fact,
    program::{Index, Node, Program},
    stage::{arguments, capabilities, confirmations, identity, spec},
};
use serde_json::Value;
use toolyard::{
    AgentTerms, Arguments, CallDigest, EventKind, PolicyIdentity, Sandbox, Terms,
    event::{Approval, Epoch, SettledBy},
};

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let (in_force, remembered) = (InForce::of(index, traces), RememberedAnswers::of(index, traces));
    let mut violations = Vec::new();
    for (number, trace) in &traces.calls {
        let Some(node) = index.nodes.get(number) else { continue };
        if index.earlier.is_answered(index, node) {
            continue; // by what was said in an earlier life
        }
        let approval =
            CallApproval { index, traces, in_force: &in_force, remembered: &remembered, node, trace };
        let mut broken =
            |rule, what: &str| violations.push(Violation::new(rule, format!("c{number} {what}")));
        approval.check_question(&mut broken);
        approval.check_start(&mut broken);
    }
    violations
}

type Broken<'a> = dyn FnMut(&'static str, &str) + 'a;

/// A call and everything its approval depends on.
struct CallApproval<'a> {
    index: &'a Index<'a>,
    traces: &'a Traces<'a>,
    in_force: &'a InForce<'a>,
    remembered: &'a RememberedAnswers,
    node: &'a Node<'a>,
    trace: &'a CallTrace<'a>,
}

impl CallApproval<'_> {
    /// Checks the question: that one was needed, and what it was about.
    fn check_question(&self, broken: &mut Broken<'_>) {
        let requested = self.trace.events.iter().find_map(|(place, at_us, event)| match &event.kind {
            EventKind::ConfirmationRequested(it) => Some((*place, *at_us, it.digest)),
            _ => None,
        });
        let Some((place, at_us, digest)) = requested else { return };
        if !self.asks() {
            return broken("PO-3", "asked for approval although its tool needs none");
        }
        let versions = 1..=self.in_force.count();
        let args = arguments(self.index.program, self.node.call);
        if !versions.into_iter().any(|version| self.digest(version, &args) == digest) {
            broken("PO-4", "asked for approval with the digest of another call");
        }
        // An answer given at the same moment may be to a question that was asked before it.
        let known = |given: &&RememberedAnswer| {
            given.is_taken()
                && given.at_us + START_US + recording_us(self.index) < checked_us(self.index, at_us)
                && !self.remembered.may_be_forgotten(given, place)
        };
        if self.remembered.before(self.pattern(), place).any(|given| known(&given)) {
            broken("PO-3", "asked for approval although a remembered answer covers it");
        }
    }

    /// Checks that the call was approved before it started.
    fn check_start(&self, broken: &mut Broken<'_>) {
        let called = self.trace.events.iter().find_map(|(place, _, event)| match event.kind {
            EventKind::Called { approval, policy_version, edited, .. } => {
                Some((*place, approval, event.kind.digest(), policy_version, edited))
            }
            _ => None,
        });
        let Some((place, approval, digest, version, edited)) = called else { return };
        let edit = self.edits(place).find(|args| edited && Some(self.digest(version, args)) == digest);
        let args = edit.cloned().unwrap_or_else(|| arguments(self.index.program, self.node.call));
        if digest != Some(self.digest(version, &args)) {
            broken("I14", "ran with the digest of another call");
        }
        let mut given = self.traces.entries[place..].iter().filter_map(|entry| match entry.fact {
            Fact::Given(node, edited) if node == self.node.call.node => Some(edited),
            _ => None,
        });
        if given.any(|given| given != edited) {
            broken("SM-5", "ran with other arguments than were approved");
        }
        match approval {
            None if self.asks() => broken("I14", "ran without asking for approval"),
            None => {}
            Some(_) if !self.asks() => broken("PO-3", "ran as approved although its tool needs no approval"),
            Some(Approval::Asked) => self.check_asked(place, version, edit, digest, broken),
            Some(Approval::Remembered) if !self.is_remembered() => {
                broken("I14", "ran on a remembered answer that was never given or was forgotten");
            }
            Some(Approval::Remembered) => {}
        }
    }

    fn check_asked(
        &self,
        called: usize,
        version: u64,
        edit: Option<&Value>,
        digest: Option<CallDigest>,
        broken: &mut Broken<'_>,
    ) {
        let sent = arguments(self.index.program, self.node.call);
        let resolved = self.trace.events.iter().find_map(|(place, at_us, event)| match &event.kind {
            EventKind::ConfirmationResolved(it) if it.approved => {
                Some((*place, *at_us, it.by, it.digest, it.input_summary.is_some()))
            }
            _ => None,
        });
        if resolved.is_some_and(|(.., recorded)| recorded != edit.is_some()) {
            broken("SM-5", "ran with arguments that the record of its question does not show");
        }
        let Some((place, at_us, by, approved, _)) = resolved.filter(|(place, ..)| *place < called) else {
            return broken("I14", "ran without an approval");
        };
        if approved != digest {
            broken("I14", "was approved with another digest than it ran with");
        }
        let asked = self.digest(version, &sent);
        let is_given = match by {
            None => false,
            Some(SettledBy::Approver) => {
                self.is_answered(place, asked, edit, |node| node == self.node.call.node)
            }
            Some(SettledBy::Shared) => {
                let peers = self.index.peers(self.node.call.node);
                self.is_answered(place, asked, edit, |node| peers.contains(&node))
            }
            Some(SettledBy::Pattern) => edit.is_none() && self.is_settled(place, at_us),
        };
        if !is_given {
            broken("I14", "ran on an approval that nobody gave");
        }
        // No attempt starts while every policy in force has another digest than the one that was approved.
        let is_approved = |version| Some(self.digest(version, edit.unwrap_or(&sent))) == digest;
        let is_stale = |it: &AttemptTrace| {
            let from_us = it.at_us.saturating_sub(START_US);
            !self.in_force.versions_between(from_us, it.place).any(is_approved)
        };
        if self.trace.attempts.iter().any(is_stale) {
            broken("I14", "started on an approval given under a replaced policy");
        }
    }

    /// Whether the approver said yes to this digest, about a call `of` these, and gave it these arguments if any.
    fn is_answered(
        &self,
        resolved: usize,
        digest: CallDigest,
        edit: Option<&Value>,
        of: impl Fn(u32) -> bool,
    ) -> bool {
        self.traces.entries[..resolved].iter().any(|entry| match &entry.fact {
            Fact::Answered(node, shown, answer) => {
                let given = match answer.arguments() {
                    Some(Arguments::Json(args)) => Some(&**args) == edit,
                    Some(Arguments::Text(_)) => false,
                    None => edit.is_none(),
                };
                of(*node) && *shown == digest && answer.allows() && given
            }
            _ => false,
        })
    }

    /// The arguments that approvers have given this call, or one whose question it may share, before this position.
    fn edits(&self, place: usize) -> impl Iterator<Item = &Value> {
        let peers = self.index.peers(self.node.call.node);
        self.traces.entries[..place].iter().filter_map(move |entry| match &entry.fact {
            Fact::Answered(node, _, answer) if *node == self.node.call.node || peers.contains(node) => {
                match answer.arguments() {
                    Some(Arguments::Json(args)) => Some(&**args),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    /// Whether a yes to another call also settled this one, either at the same time or when its question came up.
    fn is_settled(&self, resolved: usize, resolved_us: u64) -> bool {
        let received = self.trace.events.first().map_or(0, |(place, _, _)| *place);
        let mut given = self.remembered.before(self.pattern(), resolved).filter(|given| given.allows);
        given.any(|given| {
            let came_later = given.place < received;
            let at_once = given.at_us + START_US + recording_us(self.index) >= resolved_us;
            at_once || (came_later && !self.remembered.must_be_forgotten(given, received, u64::MAX))
        })
    }

    /// Whether a remembered yes existed when the gate checked the call.
    fn is_remembered(&self) -> bool {
        let (received, at_us) =
            self.trace.events.first().map_or((0, 0), |(place, at_us, _)| (*place, *at_us));
        let checked_us = checked_us(self.index, at_us);
        let mut given = self.remembered.before(self.pattern(), received).filter(|given| given.allows);
        given.any(|given| !self.remembered.must_be_forgotten(given, received, checked_us))
    }

    fn asks(&self) -> bool {
        self.node.tool.is_some_and(|tool| tool.consent.asks())
    }

    fn pattern(&self) -> Pattern {
        Pattern::of(self.index, self.node)
    }

    /// The digest of what runs under this version of the policy, with these arguments.
    fn digest(&self, version: u64, args: &Value) -> CallDigest {
        let (name, call) = (Program::tool_name(self.node.call.tool), self.node.call);
        let tool = &self.index.program.tools[call.tool];
        let agent = &self.index.agents[self.node.agent];
        let session = format!("s{}", agent.root).into();
        let granted: Vec<_> =
            agent.bars.iter().filter_map(|barred| capabilities(self.index.program, barred)).collect();
        let terms = Terms {
            policy: self.policy(version),
            agent: AgentTerms::of(&granted, &confirmations(self.index.program)),
            sandbox: if tool.sandboxed { Sandbox::Process } else { Sandbox::Host },
        };
        CallDigest::of(&name, &spec(call.tool, tool).version, args, &session, &terms)
    }

    /// The policy with this version, as digests know it.
    fn policy(&self, version: u64) -> PolicyIdentity {
        let epoch = self.traces.entries.iter().find_map(|entry| match entry.fact {
            Fact::Built(epoch) => Some(epoch),
            _ => None,
        });
        let epoch = epoch.unwrap_or(Epoch::new(0));
        match self.in_force.version(version) {
            Some(period) => identity(period.plan, epoch, version),
            None => PolicyIdentity::Life { epoch, version },
        }
    }
}
