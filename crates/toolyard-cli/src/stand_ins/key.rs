//! What tells a call from all others of a run, however many episodes run side by side (KT-10).

use parking_lot::Mutex;
use serde_json::Value;
use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash as _, Hasher as _},
    ptr,
    sync::{Arc, Weak},
};
use toolyard::{AgentPath, Arguments, CallScope, ContentHash, SessionId, ToolContext, canonical_json};

/// A SHA-256.
pub(super) type Hash = [u8; 32];

/// An episode: its id, and the how manyth of this id it is in the input, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EpisodeKey {
    pub(crate) id: Arc<str>,
    pub(crate) number: u32,
}

/// A call: the episode, the turn from 1, the tool, the hash of the arguments, and the how manyth it is of the calls of its
/// batch that are equal in all this, from 1.
#[derive(Debug, Clone)]
pub(crate) struct CallKey {
    pub(crate) episode: EpisodeKey,
    pub(crate) turn: u64,
    pub(crate) tool: Arc<str>,
    pub(crate) arguments: Hash,
    pub(crate) occurrence: u32,
}

impl CallKey {
    /// The hash of all of it.
    pub(super) fn hash(&self) -> Hash {
        ContentHash::new("toolyard stand-in 1")
            .text(&self.episode.id)
            .number(self.episode.number.into())
            .number(self.turn)
            .text(&self.tool)
            .bytes(&self.arguments)
            .number(self.occurrence.into())
            .finish()
    }
}

/// The hash of arguments; how they are spelled does not count.
pub(super) fn of_arguments(arguments: &Arguments) -> Hash {
    match arguments {
        Arguments::Json(value) => of_value(value),
        Arguments::Text(text) => match serde_json::from_str::<Value>(text) {
            Ok(value) => of_value(&value),
            // Not JSON: no tool runs such a call.
            Err(_) => ContentHash::new("toolyard text 1").text(text).finish(),
        },
    }
}

/// The same for a value.
pub(super) fn of_value(arguments: &Value) -> Hash {
    ContentHash::new("toolyard arguments 1").text(&canonical_json(arguments)).finish()
}

/// Counts the equal calls of a batch, in its order.
#[derive(Debug, Default)]
pub(super) struct Counted {
    calls: Vec<(Hash, u32)>,
    counts: HashMap<Hash, u32>,
}

impl Counted {
    /// Adds the next call of the batch. Returns the hash of its arguments, and the how manyth of its like it is.
    pub(super) fn add(&mut self, tool: &str, arguments: &Arguments) -> (Hash, u32) {
        let arguments = of_arguments(arguments);
        let like = ContentHash::new("toolyard call 1").text(tool).bytes(&arguments).finish();
        let count = self.counts.entry(like).or_default();
        *count += 1;
        self.calls.push((arguments, *count));
        (arguments, *count)
    }
}

/// The most batches whose calls are kept counted. Those of others are counted again.
const BATCHES_MAX: usize = 256;

/// Which of the equal calls of its batch a call is. The order in which calls run does not count.
#[derive(Default)]
pub(super) struct Occurrences {
    /// By session and number of the batch. A later session of the same name has batches of the same numbers, which are told
    /// apart by where they lie: what a weak reference leads to is not reused.
    batches: Mutex<HashMap<(SessionId, u64), Batch>>,
}

struct Batch {
    scope: Weak<dyn CallScope>,
    counted: Counted,
}

impl Occurrences {
    /// The hash of a call's arguments, and the how manyth of its like it is.
    pub(super) fn of(&self, cx: &ToolContext) -> (Hash, u32) {
        let (scope, index) = cx.place();
        let mut batches = self.batches.lock();
        if batches.len() >= BATCHES_MAX {
            batches.clear();
        }
        let new = || Batch { scope: Arc::downgrade(&scope), counted: Counted::default() };
        let batch = batches.entry((cx.session().clone(), cx.batch())).or_insert_with(new);
        if !ptr::addr_eq(batch.scope.as_ptr(), Arc::as_ptr(&scope)) {
            *batch = new();
        }
        let counted = &mut batch.counted;
        let known = u32::try_from(counted.calls.len()).unwrap_or(u32::MAX);
        for at in known..=index {
            let call = scope.call(at);
            counted.add(&call.name, &call.arguments);
        }
        counted.calls[index as usize]
    }
}

/// The episodes that sessions run.
#[derive(Debug, Default)]
pub(super) struct Episodes(Mutex<HashMap<SessionId, Running>>);

#[derive(Debug, Clone)]
struct Running {
    episode: EpisodeKey,
    /// The number that its first turn has in the session, whose name an earlier one may have had. `None` before that.
    first: Option<u64>,
}

impl Episodes {
    pub(super) fn insert(&self, session: &SessionId, episode: EpisodeKey) {
        self.0.lock().insert(session.clone(), Running { episode, first: None });
    }

    /// A turn of this number begins in a session.
    pub(super) fn turn_begins(&self, session: &SessionId, number: u64) {
        if let Some(running) = self.0.lock().get_mut(session) {
            running.first.get_or_insert(number);
        }
    }

    pub(super) fn remove(&self, session: &SessionId) {
        self.0.lock().remove(session);
    }

    /// The episode of an agent in a session, and the turn in it from 1; of one that nothing is known of, an episode of its
    /// name.
    pub(super) fn get(&self, session: &SessionId, agent: &AgentPath, turn: u64) -> (EpisodeKey, u64) {
        let known = self.0.lock().get(session).cloned();
        if let Some(Running { episode, first }) = known {
            return (episode, turn.saturating_sub(first.unwrap_or(1)) + 1);
        }
        let episode = {
            let id = match *agent == AgentPath::root() {
                true => session.as_str().into(),
                false => format!("{session} {agent}").into(),
            };
            EpisodeKey { id, number: 1 }
        };
        (episode, turn)
    }
}

/// Numbers episodes of one id, in the order of the input.
#[derive(Debug, Default)]
pub(crate) struct Ordinals(HashMap<u64, u32>);

impl Ordinals {
    /// The number of the next episode with this id.
    pub(crate) fn next(&mut self, id: &str) -> u32 {
        // Ids are kept as hashes, because there may be millions of them.
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let number = self.0.entry(hasher.finish()).or_default();
        *number += 1;
        *number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// KT-10: the turns of an episode count from 1, also in a session whose name an earlier one has had.
    #[test]
    fn turns_count_from_the_first_of_the_episode() {
        let (episodes, session, root) = (Episodes::default(), SessionId::from("e"), AgentPath::root());
        assert_eq!(episodes.get(&session, &root, 3).1, 3);
        episodes.insert(&session, EpisodeKey { id: "e".into(), number: 2 });
        for (number, turn) in [(3, 1), (4, 2)] {
            episodes.turn_begins(&session, number);
            let (episode, of_episode) = episodes.get(&session, &root, number);
            assert_eq!((episode.number, of_episode), (2, turn));
        }
        episodes.remove(&session);
        assert_eq!(episodes.get(&session, &root, 5).1, 5);
    }

    fn key() -> CallKey {
        CallKey {
            episode: EpisodeKey { id: "e".into(), number: 1 },
            turn: 1,
            tool: "t".into(),
            arguments: of_value(&json!({"a": 1})),
            occurrence: 1,
        }
    }

    /// KT-10: every part of a key counts.
    #[test]
    fn each_part_of_a_key_counts() {
        let of = |change: &dyn Fn(&mut CallKey)| {
            let mut key = key();
            change(&mut key);
            key.hash()
        };
        let all = [
            of(&|_| {}),
            of(&|key| key.episode.id = "f".into()),
            of(&|key| key.episode.number = 2),
            of(&|key| key.turn = 2),
            of(&|key| key.tool = "u".into()),
            of(&|key| key.arguments = of_value(&json!({"a": 2}))),
            of(&|key| key.occurrence = 2),
        ];
        let different: std::collections::BTreeSet<Hash> = all.into_iter().collect();
        assert_eq!(different.len(), all.len());
    }

    /// KT-10: equal calls are counted by tool and arguments, whose spelling does not count.
    #[test]
    fn equal_calls_are_counted() {
        let mut counted = Counted::default();
        let mut add = |tool: &str, arguments: Arguments| counted.add(tool, &arguments).1;
        assert_eq!(add("t", json!({"a": 1, "b": 2}).into()), 1);
        assert_eq!(add("t", r#"{"b": 2.0, "a": 1}"#.into()), 2);
        assert_eq!(add("u", json!({"a": 1, "b": 2}).into()), 1);
        assert_eq!(add("t", json!({"a": 1}).into()), 1);
        assert_eq!(add("t", json!({"b": 2, "a": 1}).into()), 3);
    }

    /// KT-10: episodes of one id are numbered.
    #[test]
    fn episodes_of_one_id_are_numbered() {
        let mut ordinals = Ordinals::default();
        assert_eq!(["a", "b", "a", "a"].map(|id| ordinals.next(id)), [1, 1, 2, 3]);
    }
}
