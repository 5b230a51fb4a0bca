//! How many streams of events each token has open (HT-10).

use crate::{access::Token, problem::Problem};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

/// The open streams, by token.
#[derive(Debug)]
pub(crate) struct Streams {
    most: usize,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

/// The place of one open stream.
#[derive(Debug)]
pub(crate) struct Place {
    open: Arc<Mutex<HashMap<String, usize>>>,
    of: String,
}

impl Streams {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, open: Arc::default() }
    }

    /// A place for another stream.
    pub(crate) fn open(&self, token: &Token) -> Result<Place, Problem> {
        let mut open = self.open.lock();
        let count = open.entry(token.name().to_owned()).or_default();
        if *count >= self.most {
            let problem = Problem::too_many(format!("this token has {count} open streams: close some"));
            return Err(problem.closing());
        }
        *count += 1;
        Ok(Place { open: self.open.clone(), of: token.name().to_owned() })
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().values().sum()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.of);
            }
        }
    }
}
