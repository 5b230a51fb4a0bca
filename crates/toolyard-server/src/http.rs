//! What surrounds every request: what is read of it, what is refused before it is looked at, and what is remembered.

mod answered;
mod extract;
mod guard;
mod request_id;
mod streams;

pub(crate) use answered::{Answered, once};
pub(crate) use extract::{Json, PathOf, QueryOf, expect_type, read_body};
pub(crate) use guard::{Hosts, guard};
pub(crate) use request_id::{HEADER as REQUEST_ID, Number};
pub(crate) use streams::{Place, Streams};
