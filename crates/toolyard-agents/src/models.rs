//! The requests of an agent to its models: counted, and bounded with those of its parents (AG-12).

use crate::profile::Profile;
use std::{collections::BTreeMap, sync::Arc};
use toolyard_egress::Quota;

/// What an agent has asked of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelUse {
    /// The model.
    pub name: String,
    /// Requests that it has answered.
    pub requests: u64,
    /// How many it may answer. Those of agents that this one has started count too.
    pub requests_max: Option<u64>,
    /// Bytes of requests and answers.
    pub bytes: u64,
}

/// The bounds of an agent's models, by their names, with what has been used. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quotas(Arc<BTreeMap<String, Quota>>);

impl Quotas {
    /// Those of an agent of this profile. What it asks counts against the bounds of whoever has started it, too.
    pub(crate) fn of(profile: &Profile, parents: Option<&Self>) -> Self {
        let quotas = profile.models.iter().map(|model| {
            let own = Quota::new(model.requests_max, model.bytes_max);
            let above = parents.and_then(|parents| parents.0.get(&model.name));
            (model.name.clone(), above.map_or(own.clone(), |above| own.within(above)))
        });
        Self(Arc::new(quotas.collect()))
    }

    /// That of the model of this name. Models are reached where there are doors.
    #[cfg(target_os = "linux")]
    pub(crate) fn get(&self, model: &str) -> Quota {
        self.0.get(model).cloned().unwrap_or_default()
    }

    /// What has been asked of each model.
    pub(crate) fn used(&self) -> Vec<ModelUse> {
        let used = |(name, quota): (&String, &Quota)| ModelUse {
            name: name.clone(),
            requests: quota.served(),
            requests_max: quota.requests_max(),
            bytes: quota.bytes(),
        };
        self.0.iter().map(used).collect()
    }
}
