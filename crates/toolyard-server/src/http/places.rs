//! How many streams, and how many connections, each token has open (HT-10).

use crate::{access::Token, problem::Problem};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

/// What is open, by token.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    what: &'static str,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

/// The place of one of them.
#[derive(Debug)]
pub(crate) struct Place {
    open: Arc<Mutex<HashMap<String, usize>>>,
    of: String,
}

impl Places {
    /// Places for as many of these of each token.
    pub(crate) fn new(most: usize, what: &'static str) -> Self {
        Self { most, what, open: Arc::default() }
    }

    /// A place for another one. Whoever gets none does not keep its connection.
    pub(crate) fn open(&self, token: &Token) -> Result<Place, Problem> {
        let mut open = self.open.lock();
        let count = open.entry(token.name().to_owned()).or_default();
        if *count >= self.most {
            let problem = Problem::too_many(format!("this token has {count} open {}: close some", self.what));
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
