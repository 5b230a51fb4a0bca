//! The stream of events that readers follow and resume (SM-9, HT-10).

mod history;
mod inbox;
mod kept;
mod log;
mod reader;
mod shelf;

pub(crate) use history::{History, Source};
pub(crate) use kept::Kept;
pub(crate) use reader::{Read, Reader};
