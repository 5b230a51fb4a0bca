//! What surrounds every request: what is read of it, what is refused before it is looked at, and what is remembered.

mod answered;
mod bodies;
mod entrance;
mod extract;
mod guard;
mod held;
mod numbered;
mod places;
mod request_id;

pub(crate) use answered::{Answered, key_of};
pub(crate) use bodies::Bodies;
pub(crate) use entrance::Entrance;
pub(crate) use extract::{Json, PathOf, QueryOf, admit, expect_type, pointer};
pub(crate) use guard::Hosts;
pub(crate) use held::Held;
pub(crate) use numbered::numbered;
pub(crate) use places::{Place, Places};
use request_id::Number;
