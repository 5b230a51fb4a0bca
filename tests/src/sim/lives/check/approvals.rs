//! JR-9, I14: what has to be approved starts after somebody has approved it, in this life or an earlier one; a no that
//! counts stays a no.

use super::History;
use crate::sim::{Fact, HandlerStep, check::Violation};
use std::collections::{BTreeMap, BTreeSet};
use toolyard::Receipt;

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let index = &history.index;
    let (mut found, mut allowed) = (Vec::new(), BTreeSet::new());
    // What was said last about a call, and the calls with a no that counts.
    let (mut said, mut denied) = (BTreeMap::new(), BTreeMap::new());
    for (life, fact) in history.facts() {
        match fact {
            Fact::Answered(node, _, answer) => {
                said.insert(*node, answer.allows());
                if answer.allows() {
                    allowed.insert(*node);
                    denied.remove(node);
                }
            }
            Fact::Receipt(node, Receipt::Taken) if said.get(node) == Some(&false) => {
                denied.insert(*node, life);
            }
            Fact::Handler(node, HandlerStep::Started) => {
                let Some(it) = index.nodes.get(node) else { continue };
                let asks = it.tool.is_some_and(|tool| tool.consent.asks());
                // A question may be shared by calls with one key, and an answer hold for all of a pattern.
                let is_its = |other: &u32| {
                    index.peers(*node).contains(other)
                        || index.nodes.get(other).is_some_and(|other| other.call.tool == it.call.tool)
                };
                if asks && !allowed.iter().any(is_its) {
                    found.push(Violation::new(
                        "I14",
                        format!("c{node} runs, and nobody has ever approved it"),
                    ));
                }
                // Under a policy without a fingerprint another life has other digests, and asks again (SM-7).
                let holds = history.lives[life].program.policies.iter().all(|policy| policy.has_fingerprint);
                if holds && denied.get(node).is_some_and(|denied| *denied < life) {
                    found.push(Violation::new("JR-9", format!("c{node} runs although it was denied")));
                }
            }
            _ => {}
        }
    }
    found
}
